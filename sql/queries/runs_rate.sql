-- Postings an hour over the waves of the last hour, all runs together. An idle stretch within it counts as it was.
select
    coalesce(sum(indexed + removed), 0) as finished,
    coalesce(extract(epoch from max(last_wave_at) - min(started_at)), 0)::float8 as seconds
from semantic_runs
where last_wave_at > now() - interval '1 hour'
