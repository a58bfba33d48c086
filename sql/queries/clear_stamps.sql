update jobs
set semantic_embedded_model = null, semantic_embedded_hash = null, semantic_embedding = null
where id = any(%(job_ids)s)
