-- Postings whose neighbours are missing, then those whose are the oldest beyond their age. Two arms, for each is a
-- range of jobs_similar_due_idx; an OR would walk all of it where nothing is due.
(
    select id
    from jobs
    where closed_at is null and duplicate_of is null and is_tech and semantic_embedded_model = %(model)s
        and similar_computed_at is null
    limit %(limit)s
)
union all
(
    select id
    from jobs
    where closed_at is null and duplicate_of is null and is_tech and semantic_embedded_model = %(model)s
        and similar_computed_at < now() - make_interval(days => %(days)s)
    order by similar_computed_at
    limit %(limit)s
)
limit %(limit)s
