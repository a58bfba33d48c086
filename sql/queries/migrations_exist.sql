select to_regclass('freehire_embed_migrations')
