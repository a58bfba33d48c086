-- Newest first. The posting's state tells whether a requeue has any use.
select o.id as entry_id, o.job_id, o.target_model, o.attempts, o.last_error, o.failed_at, o.created_at,
    extract(epoch from now() - o.failed_at)::float8 as dead_seconds,
    not (j.closed_at is null and j.duplicate_of is null and j.is_tech is true) as closed
from semantic_outbox o
join jobs j on j.id = o.job_id
where o.failed_at is not null
    and (%(entry)s::bigint is null or o.id = %(entry)s)
order by o.failed_at desc, o.id
limit %(limit)s
