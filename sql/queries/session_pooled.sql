-- A pooler answers a connection under a process id of its own.
select pg_backend_pid() <> %(pid)s as pooled
