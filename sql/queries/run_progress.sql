update semantic_runs
set last_wave_at = now(),
    indexed = indexed + %(indexed)s,
    removed = removed + %(removed)s,
    failed = failed + %(failed)s,
    dead_lettered = dead_lettered + %(dead_lettered)s,
    released = released + %(released)s,
    abandoned = abandoned + %(abandoned)s,
    lost = lost + %(lost)s,
    passages = passages + %(passages)s,
    over_limit = (
        select coalesce(jsonb_object_agg(language, passages), '{}')
        from (
            select language, sum(count::bigint) as passages
            from (
                select * from jsonb_each_text(over_limit)
                union all
                select * from jsonb_each_text(%(over_limit)s::jsonb)
            ) as both_counts (language, count)
            group by language
        ) as total
    )
where run_id = %(run)s
