-- Enqueue runs one at a time: the second finds everything queued and costs next to nothing.
select pg_advisory_xact_lock(hashtext('freehire_embed.enqueue'))
