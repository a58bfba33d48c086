select attname from pg_attribute
where attrelid = to_regclass('jobs') and attnum > 0 and not attisdropped
