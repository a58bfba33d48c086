-- Dead letters of a writer that does not record the content hash: the one seen first counts as the fatal one.
update semantic_outbox o
set failed_hash = coalesce(j.content_hash, '')
from jobs j
where j.id = o.job_id and o.failed_at is not null and o.failed_hash is null
