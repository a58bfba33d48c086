-- What each run has done so far, from cron or Dagster alike: the measured rate, the ETA and "nothing embedded
-- for N hours" come from here. A run writes only its own row, so lanes never wait for each other.
create table if not exists semantic_runs (
    run_id text primary key,
    target_model text not null,
    started_at timestamptz not null default now(),
    last_wave_at timestamptz,
    finished_at timestamptz,
    indexed bigint not null default 0,
    removed bigint not null default 0,
    failed bigint not null default 0,
    dead_lettered bigint not null default 0,
    released bigint not null default 0,
    abandoned bigint not null default 0,
    lost bigint not null default 0,
    passages bigint not null default 0
);
