copy import_keys (source, external_id) from stdin
