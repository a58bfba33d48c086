-- The schema of pgvector, as it has to be written where the search_path is the role's own.
select quote_ident(n.nspname) as schema
from pg_extension e
join pg_namespace n on n.oid = e.extnamespace
where e.extname = 'vector'
