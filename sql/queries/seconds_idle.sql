-- Since when no run has brought a posting to its end; null on a database that was never embedded.
select extract(epoch from now() - max(last_wave_at))::float8 as seconds
from semantic_runs
where indexed + removed > 0
