-- Gives back whatever a run still holds. After a crash the claims stay counted, since one of them may have
-- been the cause; a run that ended by itself is no evidence against anyone.
update semantic_outbox
set claimed_at = null,
    claimed_by_at = case when %(crashed)s then claimed_by_at end,
    claims = case when %(crashed)s then claims else 0 end
where claimed_by = %(run)s and claimed_by_at = claimed_at and failed_at is null
returning id
