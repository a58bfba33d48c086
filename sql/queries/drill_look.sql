-- What a drill looks at: postings done, entries by state, attempts charged.
select
    (select count(*) from jobs
        where semantic_embedded_model = %(model)s and semantic_embedded_hash is not distinct from content_hash
    ) as indexed,
    count(*) filter (where failed_at is null) as queued,
    count(*) filter (where failed_at is null and claimed_at is not null) as leased,
    count(*) filter (where failed_at is not null) as dead,
    coalesce(sum(attempts), 0)::int as charged
from semantic_outbox
