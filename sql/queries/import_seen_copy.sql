copy pg_temp.import_seen (source, external_id) from stdin
