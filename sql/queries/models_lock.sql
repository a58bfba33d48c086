-- Promotions happen one at a time: of two runs that bring the same new identity, one finds it known.
select pg_advisory_xact_lock(hashtext('freehire_embed.promote'))
