select count(*) as rows from job_semantic_chunks
