-- Dead letters of postings that need nothing any more.
delete from semantic_outbox o
using jobs j
where j.id = o.job_id
    and o.failed_at is not null
    and not (j.closed_at is null and j.duplicate_of is null and j.is_tech is true)
    and j.semantic_embedded_model is null
