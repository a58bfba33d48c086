-- clock_timestamp(): two promotions in one transaction must not tie.
insert into semantic_models (identity, width, promoted_at, probe)
values (%(identity)s, %(width)s, clock_timestamp(), %(probe)s::real[])
on conflict (identity) do update
set promoted_at = excluded.promoted_at, probe = coalesce(semantic_models.probe, excluded.probe)
