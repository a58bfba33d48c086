-- The oldest transaction that holds a lock on a table of ours; a plain reader stands in the way of a migration, but of
-- no row. What other roles' sessions do is hidden from a role without pg_monitor: pid and role are not.
select l.relation::regclass::text as relation, l.pid, a.usename as role, a.application_name as application,
    extract(epoch from clock_timestamp() - a.xact_start)::float8 as seconds
from pg_locks l
join pg_stat_activity a on a.pid = l.pid
where l.granted
    and l.pid <> pg_backend_pid()
    and l.database = (select oid from pg_database where datname = current_database())
    and l.relation in (
        to_regclass('jobs'), to_regclass('semantic_outbox'), to_regclass('job_semantic_chunks'),
        to_regclass('search_outbox'), to_regclass('semantic_models'), to_regclass('semantic_runs')
    )
    and (%(readers)s or l.mode <> 'AccessShareLock')
order by a.xact_start nulls last
limit 1
