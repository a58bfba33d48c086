update semantic_runs
set last_wave_at = now(),
    indexed = indexed + %(indexed)s,
    removed = removed + %(removed)s,
    failed = failed + %(failed)s,
    dead_lettered = dead_lettered + %(dead_lettered)s,
    released = released + %(released)s,
    abandoned = abandoned + %(abandoned)s,
    lost = lost + %(lost)s,
    passages = passages + %(passages)s
where run_id = %(run)s
