-- The keys of the files being imported, so that what is gone can be told; they live as long as the connection.
create temporary table if not exists import_seen (
    source text not null,
    external_id text not null,
    primary key (source, external_id)
)
