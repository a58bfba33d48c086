-- Tables of which row level security may hide rows from this role: it applies, and no policy lets every row be read, or
-- one restricts what others let through. A hidden posting looks like a deleted one.
select c.relname::text as name
from pg_class c
where c.oid in (
        to_regclass('jobs'), to_regclass('semantic_outbox'), to_regclass('job_semantic_chunks'),
        to_regclass('search_outbox'), to_regclass('semantic_models'), to_regclass('semantic_runs')
    )
    and row_security_active(c.oid)
    and (
        select count(*) filter (where p.polpermissive and pg_get_expr(p.polqual, p.polrelid) = 'true') = 0
            or count(*) filter (where not p.polpermissive) > 0
        from pg_policy p
        where p.polrelid = c.oid
            and p.polcmd in ('*', 'r')
            and exists (
                select from unnest(p.polroles) r (id) where r.id = 0 or pg_has_role(current_user, r.id, 'usage')
            )
    )
order by c.relname
