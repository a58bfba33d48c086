-- concurrently: jobs_semantic_model_idx
-- Enqueue: eligible and embedded, by model; both sides of the target are stale.
create index concurrently if not exists jobs_semantic_model_idx
    on public.jobs (semantic_embedded_model)
    where closed_at is null and duplicate_of is null and is_tech and semantic_embedded_model is not null;
