-- Tables of ours outside of `public`, which has none: made under a search_path that begins with the role's own schema.
select n.nspname::text as schema, c.relname::text as name
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where c.relname in ('semantic_outbox', 'freehire_embed_migrations')
    and c.relkind in ('r', 'p')
    and to_regclass('public.' || c.relname) is null
    and n.nspname not like 'pg\_%'
order by n.nspname, c.relname
limit 1
