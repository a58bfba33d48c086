-- The kept rows are matched by their hash too: another writer may have replaced them meanwhile.
delete from job_semantic_chunks c
where c.job_id = any(%(job_ids)s)
    and not exists (
        select from unnest(%(kept_job_ids)s::bigint[], %(kept_indexes)s::smallint[], %(kept_hashes)s::bytea[])
            as k (job_id, chunk_index, sha256)
        where k.job_id = c.job_id and k.chunk_index = c.chunk_index and k.sha256 = c.passage_sha256
    )
