select o.id, o.job_id, o.attempts, o.failed_at is not null as dead
from semantic_outbox o
join jobs j on j.id = o.job_id
where position(%(marker)s in j.description) > 0
