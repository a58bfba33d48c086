select to_regclass('freehire_embed_migrations') is not null as there
