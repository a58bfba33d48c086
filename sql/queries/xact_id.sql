-- This transaction's id, for the question "did it commit?"; null when it has written nothing.
select pg_current_xact_id_if_assigned()::text as xid
