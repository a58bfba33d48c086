-- concurrently: jobs_semantic_content_idx
-- Enqueue: eligible and of another revision than its vectors.
create index concurrently if not exists jobs_semantic_content_idx
    on public.jobs (id)
    where closed_at is null and duplicate_of is null and is_tech and semantic_embedded_hash is distinct from content_hash;
