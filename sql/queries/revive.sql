-- A dead letter must not block its posting for ever: it comes back when the content is no longer the one it
-- died with, or when the posting must now be cleared.
update semantic_outbox o
set failed_at = null, attempts = 0, claims = 0, claimed_at = null, claimed_by = null, claimed_by_at = null,
    failed_hash = null, last_error = ''
from jobs j
where j.id = o.job_id
    and o.failed_at is not null
    and o.target_model = %(model)s
    and case
        when j.closed_at is null and j.duplicate_of is null and j.is_tech is true
            then coalesce(j.content_hash, '') <> o.failed_hash
        else j.semantic_embedded_model is not null
    end
