-- Raises 22023 for an id that was not given out yet: then a failover has lost the transaction.
select pg_xact_status(%(xid)s::text::xid8) as status
