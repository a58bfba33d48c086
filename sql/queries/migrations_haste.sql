-- For this transaction: whoever waits for a table's lock has all later readers wait behind it. A role's own
-- statement_timeout is not meant for a migration.
select set_config('lock_timeout', '2s', true) as locks, set_config('statement_timeout', '0', true) as statements
