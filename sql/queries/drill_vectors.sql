-- The text of every posting that has vectors, and the vectors in order.
select j.id, j.title, j.company, j.description,
    array_agg(c.embedding::text order by c.chunk_index) as embeddings
from jobs j
join job_semantic_chunks c on c.job_id = j.id
group by j.id
