-- Everything that needs work and is not queued yet, in one idempotent statement.
-- Five arms instead of one OR: each is served by a partial index that holds only rows in need, which makes the
-- steady state a look at five empty indexes. "is not distinct from", where "=" would do, keeps the planner from reading
-- all postings of the model for the few whose content changed. The NOT EXISTS comes before ON CONFLICT because a
-- conflict burns an identity value for every posting that is already queued. The ORDER BY ends the search
-- before the first insert: without it an empty queue is scanned once a posting, while it fills (minutes for half a
-- million). It scatters the entries of a wave over the pages, so that each finds room beside it when it is claimed:
-- in the order of claims the table would grow.
-- `low` and `high` restrict it to a part of the ids, in each arm by itself, so that a part also reads no more than its
-- own rows; null = all of them.
with needs as (
    select id, 'missing' as reason, posted_at, created_at
    from jobs
    where closed_at is null and duplicate_of is null and is_tech and semantic_embedded_model is null
        and (%(low)s::bigint is null or id >= %(low)s::bigint and id < %(high)s::bigint)
    union all
    select id, 'model', posted_at, created_at
    from jobs
    where closed_at is null and duplicate_of is null and is_tech and semantic_embedded_model < %(model)s
        and (%(low)s::bigint is null or id >= %(low)s::bigint and id < %(high)s::bigint)
    union all
    select id, 'model', posted_at, created_at
    from jobs
    where closed_at is null and duplicate_of is null and is_tech and semantic_embedded_model > %(model)s
        and (%(low)s::bigint is null or id >= %(low)s::bigint and id < %(high)s::bigint)
    union all
    select id, 'content', posted_at, created_at
    from jobs
    where closed_at is null and duplicate_of is null and is_tech
        and semantic_embedded_hash is distinct from content_hash
        and semantic_embedded_model is not distinct from %(model)s
        and (%(low)s::bigint is null or id >= %(low)s::bigint and id < %(high)s::bigint)
    union all
    select id, 'clear', posted_at, created_at
    from jobs
    where (closed_at is not null or duplicate_of is not null or is_tech is not true)
        and semantic_embedded_model is not null
        and (%(low)s::bigint is null or id >= %(low)s::bigint and id < %(high)s::bigint)
), queued as (
    insert into semantic_outbox (job_id, target_model, job_posted_at)
    select n.id, %(model)s, coalesce(n.posted_at, n.created_at)
    from needs n
    where not exists (
            select from semantic_outbox o where o.job_id = n.id and o.target_model = %(model)s
        )
        and (%(since)s::timestamptz is null or coalesce(n.posted_at, n.created_at) >= %(since)s)
        and (%(until)s::timestamptz is null or coalesce(n.posted_at, n.created_at) < %(until)s)
    order by hashint8(n.id)
    on conflict (job_id, target_model) do nothing
    returning job_id
)
select n.reason, count(*)
from queued q
join needs n on n.id = q.job_id
group by n.reason
