-- concurrently: semantic_outbox_dead_idx
-- The dead letters, few by nature.
create index concurrently if not exists semantic_outbox_dead_idx
    on public.semantic_outbox (id) where failed_at is not null;
