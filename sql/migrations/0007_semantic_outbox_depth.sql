-- concurrently: semantic_outbox_depth_idx
-- Depth: live entries, leased ones included.
create index concurrently if not exists semantic_outbox_depth_idx
    on public.semantic_outbox (id) where failed_at is null;
