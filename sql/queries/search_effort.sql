-- For this transaction: how many candidates the HNSW index looks at (40 by default, and never more rows than that
-- come back).
select set_config('hnsw.ef_search', %(candidates)s::text, true)
