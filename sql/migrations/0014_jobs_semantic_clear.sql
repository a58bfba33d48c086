-- concurrently: jobs_semantic_clear_idx
-- Enqueue: embedded but not eligible any more.
create index concurrently if not exists jobs_semantic_clear_idx
    on public.jobs (id)
    where (closed_at is not null or duplicate_of is not null or is_tech is not true)
        and semantic_embedded_model is not null;
