-- The vectors, one row a passage. A table of our own making keeps them in the row (PLAIN): 3 KB is over the
-- TOAST threshold, and every vector out of line costs two TOAST rows. An existing table stays as it is.
do $$
begin
    if to_regclass('job_semantic_chunks') is null then
        create table job_semantic_chunks (
            job_id bigint not null references jobs (id) on delete cascade,
            chunk_index smallint not null,
            embedding vector(${width}) not null,
            primary key (job_id, chunk_index)
        );
        alter table job_semantic_chunks alter column embedding set storage plain;
    end if;
end
$$;

-- sha256 of identity, NUL and the exact input; null = written by someone who does not tell.
do $$
begin
    if not exists (
        select from pg_attribute
        where attrelid = 'job_semantic_chunks'::regclass and attname = 'passage_sha256' and not attisdropped
    ) then
        alter table job_semantic_chunks add column if not exists passage_sha256 bytea;
    end if;
end
$$;
