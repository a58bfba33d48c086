-- concurrently: semantic_outbox_model_idx
-- Finds entries of retired models without a scan.
create index concurrently if not exists semantic_outbox_model_idx
    on public.semantic_outbox (target_model) where failed_at is null;
