-- How many of the rows that a wave wants to keep are still as they were read, per posting.
select c.job_id, count(*)
from job_semantic_chunks c
join unnest(%(job_ids)s::bigint[], %(indexes)s::smallint[], %(hashes)s::bytea[]) as k (job_id, chunk_index, sha256)
    on k.job_id = c.job_id and k.chunk_index = c.chunk_index and k.sha256 = c.passage_sha256
group by c.job_id
