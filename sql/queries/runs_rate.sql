-- What all runs of the last hour have done, and the seconds in which at least one of them was at work: runs overlap,
-- and between runs nothing is measured. A clock that was set back must not make a range of negative length.
select
    coalesce(sum(finished), 0) as finished,
    coalesce(
        (select sum(extract(epoch from upper(busy) - lower(busy))) from unnest(range_agg(worked)) as busy), 0
    )::float8 as seconds
from (
    select
        indexed + removed as finished,
        tstzrange(started_at, greatest(started_at, last_wave_at)) as worked
    from semantic_runs
    where last_wave_at > now() - interval '1 hour'
) as runs
