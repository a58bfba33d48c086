-- Every index on the tables that we work, as Postgres would write it, and who is building it.
select c.relname::text as name, pg_get_indexdef(i.indexrelid) as definition, i.indisvalid and i.indisready as valid,
    p.pid as builder
from pg_index i
join pg_class c on c.oid = i.indexrelid
join pg_class t on t.oid = i.indrelid
left join pg_stat_progress_create_index p on p.index_relid = i.indexrelid and p.datname = current_database()
where t.relnamespace = to_regnamespace('public') and t.relname = any(%(tables)s::text[])
order by c.relname
