-- The wave ran out of time: the entries stay leased and come back after it. Without its mark, an entry is not
-- given back early by the end of the run.
update semantic_outbox
set claimed_by_at = null
where id = any(%(ids)s) and claimed_at = %(stamp)s and failed_at is null
returning id
