-- Nearest passages first, then one line a posting. The inner query is the shape an HNSW index serves; it
-- fetches more than asked, since several passages of a posting may be near and others drop out.
with nearest as materialized (
    select c.job_id, c.chunk_index, c.embedding <=> %(query)s::vector as distance
    from job_semantic_chunks c
    order by c.embedding <=> %(query)s::vector
    limit %(candidates)s
), best as (
    select distinct on (n.job_id) n.job_id, n.chunk_index, n.distance
    from nearest n
    join jobs j on j.id = n.job_id
    where j.closed_at is null and j.duplicate_of is null and j.is_tech and not j.is_private
        and j.semantic_embedded_model = %(model)s
        and (%(company)s::text is null or lower(%(company)s) in (lower(j.company), j.company_slug))
        and (%(since)s::timestamptz is null or coalesce(j.posted_at, j.created_at) >= %(since)s)
    order by n.job_id, n.distance
)
select b.job_id, b.chunk_index, b.distance, j.title, j.company, j.url, j.description
from best b
join jobs j on j.id = b.job_id
order by b.distance, b.job_id
limit %(limit)s
