select count(*) as depth from semantic_outbox where failed_at is null
