-- Apart from the claim, so that one unreadable posting cannot block the queue.
select id, not (closed_at is null and duplicate_of is null and is_tech is true) as closed
from jobs
where id = any(%(job_ids)s)
