-- The keys of the files being imported, so that what is gone can be told. It lives as long as its transaction: behind a
-- pooler, the next one may run on another connection, and find somebody else's table there.
create temporary table freehire_embed_seen (
    source text not null,
    external_id text not null
) on commit drop
