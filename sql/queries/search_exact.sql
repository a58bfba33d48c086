-- The same answer by comparing every passage of the postings that may be shown: where those are few, and to see what
-- the index misses. The distance stands in no ORDER BY of the inner query, so no vector index is asked.
with best as (
    select distinct on (c.job_id) c.job_id, c.chunk_index, c.embedding <=> %(query)s::vector as distance
    from jobs j
    join job_semantic_chunks c on c.job_id = j.id
    where j.closed_at is null and j.duplicate_of is null and j.is_tech and not j.is_private
        and j.semantic_embedded_model = %(model)s
        and (%(company)s::text is null or lower(%(company)s) in (lower(j.company), j.company_slug))
        and (%(since)s::timestamptz is null or coalesce(j.posted_at, j.created_at) >= %(since)s)
    order by c.job_id, distance
)
select b.job_id, b.chunk_index, b.distance, j.title, j.company, j.url, j.description
from best b
join jobs j on j.id = b.job_id
order by b.distance, b.job_id
limit %(limit)s
