insert into freehire_embed_migrations (name) values (%(name)s) on conflict (name) do nothing
