-- Makes postings stale, so that the next enqueue queues them.
update jobs
set semantic_embedded_model = null, semantic_embedded_hash = null
where id = any(%(job_ids)s)
