-- Builds that are going on, from any session.
select p.pid, p.phase, p.tuples_done, p.tuples_total, p.blocks_done, p.blocks_total, p.current_locker_pid
from pg_stat_progress_create_index p
where p.relid = 'job_semantic_chunks'::regclass and p.datname = current_database()
order by p.pid
