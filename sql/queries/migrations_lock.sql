-- Asked again and again instead of waited for: a statement that waits holds a snapshot, and the other migrator's
-- concurrent index build waits for every snapshot that is older than itself.
select pg_try_advisory_lock(hashtext('freehire_embed.migrate')) as taken
