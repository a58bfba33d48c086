-- Neighbours as people see them: those that may be shown now, with their distance as it is now.
select j.id as job_id, j.title, j.company, j.url, min(c.embedding <=> n.embedding) as distance
from jobs j
join job_semantic_chunks n on n.job_id = j.id
join job_semantic_chunks c on c.job_id = %(job_id)s
where j.id = any(%(neighbours)s)
    and j.closed_at is null and j.duplicate_of is null and j.is_tech and not j.is_private
    and j.semantic_embedded_model = %(model)s
group by j.id
order by distance, j.id
limit %(limit)s
