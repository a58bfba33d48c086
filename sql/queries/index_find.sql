-- The vector indexes of the chunks, whatever their names: an existing database may have one of its own.
select c.relname as name, i.indisvalid as valid, pg_relation_size(c.oid) as bytes
from pg_index i
join pg_class c on c.oid = i.indexrelid
join pg_am a on a.oid = c.relam
where i.indrelid = 'job_semantic_chunks'::regclass and a.amname in ('hnsw', 'ivfflat')
order by i.indisvalid desc, c.relname
