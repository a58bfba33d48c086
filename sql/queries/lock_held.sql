-- The fence and the row locks of a finishing transaction, in posting order, so that two waves or a writer on
-- jobs that goes by id cannot deadlock. What does not match is somebody else's by now.
-- For the rest of the transaction the new rows that Postgres keeps for the trigger, 3 KB a chunk, stay in memory.
with eased as materialized (
    select set_config(
        'work_mem', greatest(pg_size_bytes(current_setting('work_mem')) / 1024, 32768) || 'kB', true
    ) as memory
)
select o.id, j.id as job_id,
    not (j.closed_at is null and j.duplicate_of is null and j.is_tech is true) as closed
from eased
cross join semantic_outbox o
join jobs j on j.id = o.job_id
where o.id = any(%(ids)s) and o.claimed_at = %(stamp)s and o.failed_at is null
    and eased.memory is not null
order by j.id
for update of o
for no key update of j
