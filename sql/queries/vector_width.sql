select atttypmod as width
from pg_attribute
where attrelid = to_regclass('job_semantic_chunks') and attname = 'embedding'
