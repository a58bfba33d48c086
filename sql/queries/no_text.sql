-- Covered postings without chunks. The few that have none come first, index-only; only they are looked at for what
-- they are stamped with.
with bare as materialized (
    select j.id from jobs j
    where j.closed_at is null and j.duplicate_of is null and j.is_tech and not j.is_private
        and not exists (select from job_semantic_chunks c where c.job_id = j.id)
)
select count(*) as postings
from bare b
join jobs j on j.id = b.id
where j.semantic_embedded_model = %(model)s and j.semantic_embedded_hash is not distinct from j.content_hash
