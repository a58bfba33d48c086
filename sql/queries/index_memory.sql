select pg_size_bytes(current_setting('maintenance_work_mem')) as bytes
