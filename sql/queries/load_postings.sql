-- Text and content hash are read together: the stamp must not be newer than the text.
select id, title, company, description, content_hash,
    not (closed_at is null and duplicate_of is null and is_tech is true) as closed
from jobs
where id = any(%(job_ids)s)
order by id
