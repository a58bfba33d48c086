-- The vector indexes of the chunks, whatever their names: an existing database may have one of its own. One of another
-- operator class or over a part of the rows serves no query of ours.
select c.relname::text as name, i.indisvalid as valid, pg_relation_size(c.oid) as bytes,
    o.opcname = 'vector_cosine_ops' and i.indpred is null as serves
from pg_index i
join pg_class c on c.oid = i.indexrelid
join pg_am a on a.oid = c.relam
join pg_opclass o on o.oid = i.indclass[0]
where i.indrelid = to_regclass('public.job_semantic_chunks') and a.amname in ('hnsw', 'ivfflat')
order by i.indisvalid desc, c.relname
