-- The oldest transaction that holds a lock on a table of ours.
select l.relation::regclass::text as relation, l.pid, a.application_name as application,
    extract(epoch from clock_timestamp() - a.xact_start) as seconds
from pg_locks l
join pg_stat_activity a on a.pid = l.pid
where l.granted
    and l.pid <> pg_backend_pid()
    and l.database = (select oid from pg_database where datname = current_database())
    and l.relation in (
        to_regclass('jobs'), to_regclass('semantic_outbox'), to_regclass('job_semantic_chunks'),
        to_regclass('search_outbox'), to_regclass('semantic_models'), to_regclass('semantic_runs')
    )
order by a.xact_start
limit 1
