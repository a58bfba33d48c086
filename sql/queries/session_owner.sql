-- Who may change the tables: the owner of the queue, on a database that has none yet of `public`.
select pg_get_userbyid(coalesce(
    (select relowner from pg_class where oid = to_regclass('semantic_outbox')),
    (select relowner from pg_class where oid = to_regclass('jobs')),
    (select nspowner from pg_namespace where nspname = 'public')
))::text as owner, current_user::text as role
