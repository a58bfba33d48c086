-- concurrently: jobs_semantic_missing_idx
-- Enqueue: eligible and never embedded. Holds only rows that need work, so it is empty in the steady state.
create index concurrently if not exists jobs_semantic_missing_idx
    on public.jobs (id)
    where closed_at is null and duplicate_of is null and is_tech and semantic_embedded_model is null;
