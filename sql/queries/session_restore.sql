-- What session_unhurried.sql has changed is again as the role and the database have it.
select set_config(name, reset_val, false)
from pg_settings
where name in ('statement_timeout', 'lock_timeout', 'transaction_timeout', 'maintenance_work_mem')
