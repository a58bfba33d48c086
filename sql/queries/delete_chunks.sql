delete from job_semantic_chunks where job_id = any(%(job_ids)s)
