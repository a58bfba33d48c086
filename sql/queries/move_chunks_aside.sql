-- Moves go through negative numbers: the primary key is checked row by row, and two chunks may change places.
update job_semantic_chunks c
set chunk_index = -1 - m.new_index
from unnest(%(job_ids)s::bigint[], %(old_indexes)s::smallint[], %(new_indexes)s::smallint[])
    as m (job_id, old_index, new_index)
where c.job_id = m.job_id and c.chunk_index = m.old_index
