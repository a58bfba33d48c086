-- For the session that builds an index: nothing ends it, since a concurrent build takes hours and waits for every
-- transaction that is older than itself, and it has the memory for the graph (null = the server's own setting).
select set_config(name, coalesce(case name when 'maintenance_work_mem' then %(memory)s end, '0'), false)
from pg_settings
where name in ('statement_timeout', 'lock_timeout', 'transaction_timeout')
    or name = 'maintenance_work_mem' and %(memory)s::text is not null
