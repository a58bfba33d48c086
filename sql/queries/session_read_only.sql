select pg_is_in_recovery() as standby, current_setting('transaction_read_only') = 'on' as read_only
