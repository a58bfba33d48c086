-- Every contradiction between stamps and chunks among the postings with ids in (after, upto]. One row a posting and kind.
-- A posting stamped with the target and its current hash is settled: a run has nothing to do for it.
with posting as (
    select id,
        closed_at is null and duplicate_of is null and is_tech is true as eligible,
        semantic_embedded_model as model,
        semantic_embedded_model = %(model)s and semantic_embedded_hash is not distinct from content_hash as settled
    from jobs
    where id > %(after)s and id <= %(upto)s
), chunks as (
    select job_id, count(*) as chunks, min(chunk_index) as first, max(chunk_index) as last,
        count(*) filter (where vector_dims(embedding) <> %(width)s) as misfits,
        count(*) filter (where abs(vector_norm(embedding) - 1) > 0.01) as unscaled
    from job_semantic_chunks
    where job_id > %(after)s and job_id <= %(upto)s
    group by job_id
)
select p.id as job_id, found.kind
from posting p
left join chunks c on c.job_id = p.id
cross join lateral (
    values
        ('stamp_without_chunks', p.eligible and p.settled and c.job_id is null),
        ('chunks_without_stamp', p.eligible and p.model is null and c.job_id is not null),
        ('chunks_of_ineligible', not p.eligible and c.job_id is not null),
        ('gap_in_chunk_index', c.first <> 0 or c.last - c.first + 1 <> c.chunks),
        ('wrong_width', c.misfits > 0),
        ('wrong_norm', c.unscaled > 0)
) as found (kind, holds)
where found.holds
order by p.id
