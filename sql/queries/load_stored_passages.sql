select job_id, chunk_index, passage_sha256
from job_semantic_chunks
where job_id = any(%(job_ids)s)
