copy pg_temp.freehire_embed_seen (source, external_id) from stdin
