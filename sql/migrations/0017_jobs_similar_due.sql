-- concurrently: jobs_similar_due_idx
-- Similar postings: whose neighbours are missing (null) and whose are the oldest, without a look at the others.
create index concurrently if not exists jobs_similar_due_idx
    on public.jobs (similar_computed_at)
    where closed_at is null and duplicate_of is null and is_tech and semantic_embedded_model is not null;
