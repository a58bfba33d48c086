-- The freshest free entries of the target, leased to this run. Order comes from semantic_outbox alone: ordering
-- through a join with jobs cost 109 s a claim at 906 thousand rows. The CTE is materialized and read in its
-- own order, so nothing is sorted.
-- An entry claimed `suspect_after` times without an outcome may kill its worker: it waits until it stands at the
-- head of the queue and is then claimed alone.
-- Any ending takes claimed_by_at away, so where it still stands the last worker died with the claim.
-- claimed_by keeps the name of the last run, so that a run never takes again what it gave up.
with picked as materialized (
    select o.id, o.claims, o.claimed_by_at is not null as crashed
    from semantic_outbox o
    where o.failed_at is null
        and (o.claimed_at is null or o.claimed_at < now() - make_interval(secs => %(lease)s))
        and o.target_model = %(model)s
        and o.claimed_by is distinct from %(run)s
        and (%(since)s::timestamptz is null or o.job_posted_at >= %(since)s)
        and (%(until)s::timestamptz is null or o.job_posted_at < %(until)s)
    order by o.job_posted_at desc nulls last, o.job_id desc
    limit %(limit)s
    for update of o skip locked
), head as (
    select id, claims from picked limit 1
), wave as (
    select p.id, p.crashed
    from picked p, head h
    where case when h.claims >= %(suspect_after)s then p.id = h.id else p.claims < %(suspect_after)s end
)
update semantic_outbox o
set claimed_at = now(), claims = o.claims + 1, claimed_by = %(run)s, claimed_by_at = now()
from wave w
where o.id = w.id
returning
    o.id as entry_id, o.job_id, o.claimed_at, o.attempts, o.claims, w.crashed,
    %(grace_days)s > 0 and o.created_at < now() - make_interval(days => %(grace_days)s) as past_grace
