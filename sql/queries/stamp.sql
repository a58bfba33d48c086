-- The hash is the one read with the text. Neighbours are stale only where the vectors changed. Where no chunk is kept
-- all go along in the same round trip.
with gone as (
    delete from job_semantic_chunks where job_id = any(%(emptied)s)
)
update jobs j
set semantic_embedded_model = %(model)s,
    semantic_embedded_hash = s.hash,
    similar_computed_at = case when s.changed then null else j.similar_computed_at end
from unnest(%(job_ids)s::bigint[], %(hashes)s::text[], %(changed)s::boolean[]) as s (job_id, hash, changed)
where j.id = s.job_id
