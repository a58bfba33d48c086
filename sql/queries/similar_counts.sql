-- How the lists of the target's postings stand.
select
    count(*) as postings,
    count(*) filter (where similar_computed_at is null) as missing,
    count(*) filter (where similar_computed_at is not null and cardinality(similar_job_ids) = %(kept)s) as full,
    count(*) filter (where similar_computed_at is not null and coalesce(cardinality(similar_job_ids), 0) = 0) as empty,
    coalesce(extract(epoch from now() - min(similar_computed_at)), 0)::float8 as oldest_seconds
from jobs
where closed_at is null and duplicate_of is null and is_tech and semantic_embedded_model = %(model)s
