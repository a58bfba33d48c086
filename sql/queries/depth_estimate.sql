-- The planner's row estimate: microseconds at any size.
explain (format json) select id from semantic_outbox where failed_at is null
