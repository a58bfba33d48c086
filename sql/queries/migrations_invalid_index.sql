select from pg_index where indexrelid = to_regclass(%(index)s) and not indisvalid
