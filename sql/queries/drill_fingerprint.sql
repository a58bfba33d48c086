-- Changes when any row of the catalogue, the queue or the vectors is written, even with the same values.
select md5(string_agg(row_version, ',' order by row_version)) as fingerprint
from (
    select 'j' || id || ':' || xmin from jobs where id is distinct from %(but)s
    union all
    select 'o' || id || ':' || xmin from semantic_outbox where job_id is distinct from %(but)s
    union all
    select 'c' || job_id || '/' || chunk_index || ':' || xmin
    from job_semantic_chunks
    where job_id is distinct from %(but)s
) versions (row_version)
