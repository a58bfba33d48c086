-- For this transaction: whoever waits for a table's lock has all later readers wait behind it.
select set_config('lock_timeout', '2s', true)
