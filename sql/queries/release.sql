-- Gives entries back at once. claimed_by stays: this run does not take them again.
update semantic_outbox
set claimed_at = null, claimed_by_at = null, claims = 0
where id = any(%(ids)s) and claimed_at = %(stamp)s and failed_at is null
returning id
