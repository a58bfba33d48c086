-- Asked again and again instead of waited for: a statement that waits holds a snapshot, and the other migrator's
-- concurrent index build waits for every snapshot that is older than itself. Its holder is idle for as long as the
-- migrations take, and has no snapshot.
select pg_try_advisory_xact_lock(hashtext('freehire_embed.migrate')) as taken,
    set_config('idle_in_transaction_session_timeout', '0', true) as idle
