-- A sample of the postings to be embedded, spread over the catalogue by a hash of the id: always the same one.
select id
from jobs
where closed_at is null and duplicate_of is null and is_tech
    and (
        semantic_embedded_model is distinct from %(model)s
        or semantic_embedded_hash is distinct from content_hash
    )
order by hashint8(id)
limit %(limit)s
