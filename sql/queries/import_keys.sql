-- The keys of the files, for the statement that follows in the same transaction, with which they go: behind a pooler
-- the next transaction may be on another server connection, and this one be somebody else's.
create temporary table import_keys (
    source text not null,
    external_id text not null
) on commit drop
