-- concurrently: job_semantic_chunks_embedding_idx
-- Nearest passages by cosine. Dropped and rebuilt around a full re-embed, see docs.
create index concurrently if not exists job_semantic_chunks_embedding_idx
    on public.job_semantic_chunks using hnsw (embedding ${vector}.vector_cosine_ops);
