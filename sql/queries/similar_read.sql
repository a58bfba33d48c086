-- What is stored for one posting; null computed_at = missing or stale.
select semantic_embedded_model = %(model)s as embedded, similar_job_ids as neighbours, similar_computed_at as computed_at
from jobs
where id = %(job_id)s
