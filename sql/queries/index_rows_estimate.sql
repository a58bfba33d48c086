-- The planner's row estimate: counting millions of vectors takes seconds.
explain (format json) select job_id from job_semantic_chunks
