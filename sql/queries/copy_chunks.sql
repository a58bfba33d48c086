copy job_semantic_chunks (job_id, chunk_index, embedding, passage_sha256) from stdin (format binary)
