-- Live entries of other models would be embedded twice, once for nothing. Leased ones are somebody's work in
-- hand and go when they end. Two arms, so that the index on target_model finds them without a scan.
with others as (
    select id from semantic_outbox
    where failed_at is null and target_model < %(model)s
    union all
    select id from semantic_outbox
    where failed_at is null and target_model > %(model)s
)
delete from semantic_outbox o
using others
where o.id = others.id
    and o.failed_at is null
    and (o.claimed_at is null or o.claimed_at < now() - make_interval(secs => %(lease)s))
