-- concurrently: jobs_semantic_eligible_idx
-- Coverage: counts the eligible postings index-only.
create index concurrently if not exists jobs_semantic_eligible_idx
    on public.jobs (id)
    where closed_at is null and duplicate_of is null and is_tech and not is_private;
