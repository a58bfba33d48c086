create table if not exists freehire_embed_migrations (
    name text primary key,
    applied_at timestamptz not null default now()
)
