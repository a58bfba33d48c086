-- Charges each entry one attempt. claimed_at is kept: the next attempt comes after the lease.
update semantic_outbox o
set attempts = o.attempts + 1,
    claims = 0,
    claimed_by_at = null,
    last_error = f.error,
    failed_at = case when f.final or o.attempts + 1 >= %(max_attempts)s then now() end,
    failed_hash = case when f.final or o.attempts + 1 >= %(max_attempts)s then f.hash end
from unnest(%(ids)s::bigint[], %(errors)s::text[], %(finals)s::boolean[], %(hashes)s::text[])
    as f (id, error, final, hash)
where o.id = f.id and o.claimed_at = %(stamp)s and o.failed_at is null
returning o.id, o.failed_at is not null as dead
