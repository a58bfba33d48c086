-- The queue. It holds references only: the text is read when the work is done, so an entry cannot go stale.
-- Columns after job_posted_at are ours alone; a writer that does not know them leaves them null or default,
-- which always means "unknown".
create table if not exists semantic_outbox (
    id bigint generated always as identity primary key,
    job_id bigint not null references jobs (id) on delete cascade,
    target_model text not null,
    attempts integer not null default 0,
    claimed_at timestamptz,
    failed_at timestamptz,
    last_error text not null default '',
    created_at timestamptz not null default now(),
    job_posted_at timestamptz,
    unique (job_id, target_model)
);

-- ALTER TABLE locks readers out even where it finds nothing to add.
do $$
begin
    if (
        select count(*) < 4 from pg_attribute
        where attrelid = 'semantic_outbox'::regclass
            and not attisdropped
            and attname in ('claims', 'claimed_by', 'claimed_by_at', 'failed_hash')
    ) then
        alter table semantic_outbox
            -- claims since the last outcome: an entry that kills its worker leaves no other trace
            add column if not exists claims integer not null default 0,
            -- the run that holds the claim; counts only while claimed_by_at equals claimed_at, since another
            -- writer moves claimed_at alone
            add column if not exists claimed_by text,
            add column if not exists claimed_by_at timestamptz,
            -- content hash that a dead letter died with ('' for a posting without one)
            add column if not exists failed_hash text;
    end if;
end
$$;

-- Room on each page keeps every claim a HOT update: a drain grows neither heap nor indexes. For the same
-- reason no index may name claimed_at, attempts, claims or claimed_by.
alter table semantic_outbox set (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 5000
);
