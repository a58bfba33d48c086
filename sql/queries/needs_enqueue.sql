-- Whether an enqueue would change the queue: the arms of enqueue.sql, then adopt_dead.sql,
-- revive.sql, reap.sql and retire.sql. Asked when the queue is empty, so that no run is started for nothing; it stops at
-- the first row it finds. The ORDER BY of an arm makes the planner use its index even where
-- it expects so many rows that a scan would soon meet one: mostly there is none.
select exists (
    (
        select from jobs j
        where closed_at is null and duplicate_of is null and is_tech and semantic_embedded_model is null
            and not exists (select from semantic_outbox o where o.job_id = j.id and o.target_model = %(model)s)
        order by id limit 1
    )
    union all
    (
        select from jobs j
        where closed_at is null and duplicate_of is null and is_tech and semantic_embedded_model < %(model)s
            and not exists (select from semantic_outbox o where o.job_id = j.id and o.target_model = %(model)s)
        order by semantic_embedded_model limit 1
    )
    union all
    (
        select from jobs j
        where closed_at is null and duplicate_of is null and is_tech and semantic_embedded_model > %(model)s
            and not exists (select from semantic_outbox o where o.job_id = j.id and o.target_model = %(model)s)
        order by semantic_embedded_model limit 1
    )
    union all
    (
        select from jobs j
        where closed_at is null and duplicate_of is null and is_tech
            and semantic_embedded_hash is distinct from content_hash
            and semantic_embedded_model is not distinct from %(model)s
            and not exists (select from semantic_outbox o where o.job_id = j.id and o.target_model = %(model)s)
        order by id limit 1
    )
    union all
    (
        select from jobs j
        where (closed_at is not null or duplicate_of is not null or is_tech is not true)
            and semantic_embedded_model is not null
            and not exists (select from semantic_outbox o where o.job_id = j.id and o.target_model = %(model)s)
        order by id limit 1
    )
    union all
    select from semantic_outbox o
    join jobs j on j.id = o.job_id
    where o.failed_at is not null
        and case
            when o.failed_hash is null then true
            when j.closed_at is null and j.duplicate_of is null and j.is_tech is true
                then o.target_model = %(model)s and coalesce(j.content_hash, '') <> o.failed_hash
            else j.semantic_embedded_model is null or o.target_model = %(model)s
        end
    union all
    select from semantic_outbox
    where failed_at is null and target_model <> %(model)s
        and (claimed_at is null or claimed_at < now() - make_interval(secs => %(lease)s))
) as needed
