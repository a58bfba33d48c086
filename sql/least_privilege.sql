-- The rights a worker needs at run time, and no more. Run it once as the owner of the tables, after
-- `freehire-embed migrate`; then let DATABASE_URL log in as a role that is a member of this one:
--     create role worker login password '…' in role freehire_embed_worker;
-- Migrations themselves are run by the owner.
do $$
begin
    if not exists (select from pg_roles where rolname = 'freehire_embed_worker') then
        create role freehire_embed_worker nologin;
    end if;
end
$$;

grant usage on schema public to freehire_embed_worker;
-- pgvector may have been installed elsewhere
do $$
begin
    execute (
        select format('grant usage on schema %I to freehire_embed_worker', n.nspname)
        from pg_extension e
        join pg_namespace n on n.oid = e.extnamespace
        where e.extname = 'vector'
    );
end
$$;

grant select on public.jobs to freehire_embed_worker;
grant update (
    semantic_embedded_model, semantic_embedded_hash, semantic_embedding, similar_job_ids, similar_computed_at
) on public.jobs to freehire_embed_worker;

grant select, insert, update, delete on public.semantic_outbox, public.job_semantic_chunks to freehire_embed_worker;
-- written by the trigger, with the rights of whoever inserts the chunks
grant select, insert on public.search_outbox to freehire_embed_worker;
grant select, insert, update on public.semantic_models to freehire_embed_worker;
grant select, insert, update, delete on public.semantic_runs to freehire_embed_worker;
grant select on public.freehire_embed_migrations to freehire_embed_worker;
