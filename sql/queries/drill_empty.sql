truncate jobs, semantic_outbox, job_semantic_chunks, search_outbox, semantic_runs restart identity cascade
