select
    current_setting('server_version_num')::int as version_number,
    current_setting('server_version') as version,
    e.extversion as pgvector,
    n.nspname::text as pgvector_schema,
    coalesce(has_schema_privilege(n.oid, 'usage'), true) as pgvector_usable
from (values (0)) one
left join pg_extension e on e.extname = 'vector'
left join pg_namespace n on n.oid = e.extnamespace
