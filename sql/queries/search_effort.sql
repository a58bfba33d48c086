-- For this transaction: how many candidates the HNSW index looks at (40 by default, and never more rows than that
-- come back), or, with exact, that it is left alone and every passage compared.
select
    set_config('hnsw.ef_search', %(candidates)s::text, true) as effort,
    set_config('enable_indexscan', case when %(exact)s then 'off' else 'on' end, true) as indexes
