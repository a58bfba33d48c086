select
    current_setting('server_version_num')::int as version_number,
    current_setting('server_version') as version,
    (select extversion from pg_extension where extname = 'vector') as pgvector
