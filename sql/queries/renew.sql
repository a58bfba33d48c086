update semantic_outbox
set claimed_at = now(), claimed_by_at = now()
where id = any(%(ids)s) and claimed_at = %(stamp)s and failed_at is null
returning id, claimed_at
