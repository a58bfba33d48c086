update job_semantic_chunks
set chunk_index = -1 - chunk_index
where job_id = any(%(job_ids)s) and chunk_index < 0
