select pg_xact_status(%(xid)s::text::xid8) as status
