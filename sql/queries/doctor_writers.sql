-- Identities that somebody else works under: queued since the target was promoted and by no run of ours, or stamped
-- although this database has never been embedded with them.
with target as (
    select identity, promoted_at from semantic_models order by promoted_at desc, identity limit 1
)
select o.target_model as identity, count(*) as rows, 'entries of semantic_outbox' as what
from semantic_outbox o
join target t on o.target_model <> t.identity and o.created_at > t.promoted_at
where o.failed_at is null
    and not exists (
        select from semantic_runs r where r.target_model = o.target_model and r.started_at > t.promoted_at
    )
group by o.target_model
union all
select s.identity, s.rows, 'stamps on jobs'
from target t
cross join (
    select semantic_embedded_model as identity, count(*) as rows
    from jobs
    where closed_at is null and duplicate_of is null and is_tech and semantic_embedded_model is not null
    group by semantic_embedded_model
) s
where not exists (select from semantic_models m where m.identity = s.identity)
order by identity
