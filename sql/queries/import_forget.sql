drop table if exists import_seen
