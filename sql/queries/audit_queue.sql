-- Postings that no enqueue would find, for they have chunks and no stamp: the queue clears them.
insert into semantic_outbox (job_id, target_model, job_posted_at)
select id, %(model)s, coalesce(posted_at, created_at)
from jobs
where id = any(%(job_ids)s)
on conflict (job_id, target_model) do nothing
