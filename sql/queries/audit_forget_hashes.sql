-- A chunk without a hash is never kept: the next run embeds it anew.
update job_semantic_chunks
set passage_sha256 = null
where job_id = any(%(job_ids)s) and passage_sha256 is not null
