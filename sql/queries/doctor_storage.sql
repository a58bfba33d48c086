-- Where the vectors lie: in their rows (PLAIN), or out of line, two more rows for each.
select attstorage = 'p' as plain
from pg_attribute
where attrelid = to_regclass('job_semantic_chunks') and attname = 'embedding'
