-- For the session that builds: the memory for the graph (null = the server's own setting), and patience, since a
-- concurrent build waits for every transaction that is older than itself.
select
    set_config('maintenance_work_mem', coalesce(%(memory)s, current_setting('maintenance_work_mem')), false) as memory,
    set_config('lock_timeout', '0', false) as locks
