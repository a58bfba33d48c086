-- Only where the posting is still stamped as it was when its chunks were read: neighbours of an older text, or of
-- another model, are nobody's.
update jobs j
set similar_job_ids = s.neighbours::bigint[], similar_computed_at = now()
from unnest(%(job_ids)s::bigint[], %(hashes)s::text[], %(neighbours)s::text[]) as s (job_id, hash, neighbours)
where j.id = s.job_id
    and j.semantic_embedded_model = %(model)s
    and j.semantic_embedded_hash is not distinct from s.hash
returning j.id
