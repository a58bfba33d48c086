-- Settled postings to check against their text, with their vectors: spread over the catalogue by a hash of the id and a
-- seed, so that each audit may look at others.
select id, title, company, description,
    (
        select array_agg(c.chunk_index order by c.chunk_index) from job_semantic_chunks c where c.job_id = j.id
    ) as indexes,
    (
        select array_agg(c.passage_sha256 order by c.chunk_index) from job_semantic_chunks c where c.job_id = j.id
    ) as hashes,
    (
        select array_agg(c.embedding::real[] order by c.chunk_index) from job_semantic_chunks c where c.job_id = j.id
    ) as embeddings
from jobs j
where closed_at is null and duplicate_of is null and is_tech and semantic_embedded_model = %(model)s
    and semantic_embedded_hash is not distinct from content_hash
order by hashint8extended(id, %(seed)s)
limit %(limit)s
