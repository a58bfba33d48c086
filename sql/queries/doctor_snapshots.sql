-- Old snapshots keep dead queue rows alive, and every claim has to step over them.
select case when left(state, 4) = 'idle' then 'an idle transaction' else 'a running statement' end as what,
    coalesce(nullif(application_name, ''), backend_type) as who,
    pid::text as handle,
    extract(epoch from now() - xact_start)::float8 as seconds
from pg_stat_activity
where (backend_xmin is not null or backend_xid is not null)
    and xact_start < now() - make_interval(secs => %(older_than)s)
    and pid <> pg_backend_pid()
    and datname = current_database()
    and backend_type = 'client backend'
union all
select 'a prepared transaction', owner, gid, extract(epoch from now() - prepared)::float8
from pg_prepared_xacts
where database = current_database() and prepared < now() - make_interval(secs => %(older_than)s)
order by seconds desc
