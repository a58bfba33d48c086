-- What enqueue.sql would find (its five arms, by the same partial indexes), without writing: by reason, and how much
-- of it is queued already or blocked by a dead letter that enqueue would not bring back.
with needs as (
    select id, 'missing' as reason, content_hash
    from jobs
    where closed_at is null and duplicate_of is null and is_tech and semantic_embedded_model is null
    union all
    select id, 'model', content_hash
    from jobs
    where closed_at is null and duplicate_of is null and is_tech and semantic_embedded_model < %(model)s
    union all
    select id, 'model', content_hash
    from jobs
    where closed_at is null and duplicate_of is null and is_tech and semantic_embedded_model > %(model)s
    union all
    select id, 'content', content_hash
    from jobs
    where closed_at is null and duplicate_of is null and is_tech
        and semantic_embedded_hash is distinct from content_hash
        and semantic_embedded_model is not distinct from %(model)s
    union all
    select id, 'clear', content_hash
    from jobs
    where (closed_at is not null or duplicate_of is not null or is_tech is not true)
        and semantic_embedded_model is not null
), judged as (
    select n.reason,
        o.id is not null and o.failed_at is null as queued,
        coalesce(
            o.failed_at is not null
                and n.reason <> 'clear'
                and coalesce(n.content_hash, '') = coalesce(o.failed_hash, n.content_hash, ''),
            false
        ) as dead
    from needs n
    left join semantic_outbox o on o.job_id = n.id and o.target_model = %(model)s
)
select reason, count(*) as postings, count(*) filter (where queued) as queued, count(*) filter (where dead) as dead
from judged
group by reason
