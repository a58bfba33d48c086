-- One look at the queue for operators; counts every live entry, so it is not for hot paths.
select
    count(*) filter (where failed_at is null) as depth,
    count(*) filter (where failed_at is null and claimed_at >= now() - make_interval(secs => %(lease)s)) as leased,
    count(*) filter (where failed_at is not null) as dead,
    coalesce(extract(epoch from now() - min(created_at) filter (where failed_at is null)), 0)::float8
        as oldest_seconds
from semantic_outbox
