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

grant select on jobs to freehire_embed_worker;
grant update (
    semantic_embedded_model, semantic_embedded_hash, semantic_embedding, similar_job_ids, similar_computed_at
) on jobs to freehire_embed_worker;

grant select, insert, update, delete on semantic_outbox, job_semantic_chunks to freehire_embed_worker;
-- written by the trigger, with the rights of whoever inserts the chunks
grant select, insert on search_outbox to freehire_embed_worker;
grant select, insert, update on semantic_models to freehire_embed_worker;
grant select, insert, update, delete on semantic_runs to freehire_embed_worker;
grant select on freehire_embed_migrations to freehire_embed_worker;
