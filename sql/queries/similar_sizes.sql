-- How many chunks each posting has, the smallest first: so many probes its neighbours take.
select p.id as job_id, coalesce(max(c.chunk_index) + 1, 0) as chunks
from unnest(%(job_ids)s::bigint[]) as p (id)
left join job_semantic_chunks c on c.job_id = p.id
group by p.id
order by chunks, p.id
