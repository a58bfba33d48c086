-- The nearest other postings of each source posting, by its nearest pair of chunks, of which one is in the range of
-- its chunks that is asked for: a posting of thousands takes several statements, each as short as any.
-- One probe of the vector index a chunk, nothing else may stand beside it in the lateral query: the index serves
-- ORDER BY distance LIMIT alone, and what must not be shown is left out afterwards, which is what the candidates are
-- fetched in excess for. Joining all pairs of chunks instead took 152 s a posting at 730,000 chunks.
with source as (
    select j.id, j.semantic_embedded_hash as hash, j.company_slug, r.first, r.last
    from unnest(%(job_ids)s::bigint[], %(firsts)s::int[], %(lasts)s::int[]) as r (job_id, first, last)
    join jobs j on j.id = r.job_id
    where closed_at is null and duplicate_of is null and is_tech and semantic_embedded_model = %(model)s
), near as (
    select s.id, n.job_id, min(n.distance) as distance
    from source s
    join job_semantic_chunks c on c.job_id = s.id and c.chunk_index >= s.first and c.chunk_index < s.last
    cross join lateral (
        select o.job_id, o.embedding <=> c.embedding as distance
        from job_semantic_chunks o
        order by o.embedding <=> c.embedding
        limit %(candidates)s
    ) n
    where n.job_id <> s.id and n.distance <> 'NaN'
    group by s.id, n.job_id
), shown as (
    select n.id, n.job_id, n.distance, row_number() over (partition by n.id order by n.distance, n.job_id) as place
    from near n
    join source s on s.id = n.id
    join jobs j on j.id = n.job_id
    where j.closed_at is null and j.duplicate_of is null and j.is_tech and not j.is_private
        and j.semantic_embedded_model = %(model)s
        and (j.company_slug = '' or j.company_slug <> s.company_slug)
)
select s.id as job_id, s.hash,
    coalesce(array_agg(n.job_id order by n.place) filter (where n.place is not null), '{}') as neighbours,
    coalesce(array_agg(n.distance order by n.place) filter (where n.place is not null), '{}') as distances
from source s
left join shown n on n.id = s.id and n.place <= %(kept)s
group by s.id, s.hash
