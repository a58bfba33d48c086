select pg_advisory_unlock(hashtext('freehire_embed.migrate')), set_config('lock_timeout', '20s', false) as locks
