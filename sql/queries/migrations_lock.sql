-- A waiter must not be cut off by lock_timeout: the other migrator may be building an index.
with patient as (select set_config('lock_timeout', '0', false))
select pg_advisory_lock(hashtext('freehire_embed.migrate')) from patient
