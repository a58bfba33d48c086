-- A concurrent build waits for every transaction that is older than itself, and stands in nobody's way.
select set_config('lock_timeout', '0', false)
