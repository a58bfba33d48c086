-- concurrently: semantic_outbox_claim_idx
-- Exactly the claim order, so that a claim reads its wave and nothing else.
create index concurrently if not exists semantic_outbox_claim_idx
    on public.semantic_outbox (job_posted_at desc nulls last, job_id desc) where failed_at is null;
