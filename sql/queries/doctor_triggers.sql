-- What inserts into the chunks fire, as far as it has to do with waking the search.
select t.tgname::text as name, t.tgenabled in ('O', 'A') as enabled, t.tgtype & 1 <> 0 as per_row,
    p.prosrc ilike '%%search_outbox%%' as wakes
from pg_trigger t
join pg_proc p on p.oid = t.tgfoid
where t.tgrelid = to_regclass('job_semantic_chunks')
    and not t.tgisinternal
    and t.tgtype & 4 <> 0
    and (t.tgnewtable is not null or p.prosrc ilike '%%search_outbox%%')
order by t.tgname
