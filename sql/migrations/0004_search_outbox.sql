-- Wakes the search indexer for each open posting whose vectors were touched. A statement-level trigger, not a
-- statement of ours: there is a second writer, and one that forgets looks just like "nobody embedded it".
create table if not exists search_outbox (
    id bigint generated always as identity primary key,
    job_id bigint not null unique references jobs (id) on delete cascade,
    attempts integer not null default 0,
    claimed_at timestamptz,
    failed_at timestamptz,
    last_error text not null default '',
    created_at timestamptz not null default now(),
    job_posted_at timestamptz
);

create or replace function enqueue_search_of_embedded() returns trigger
language plpgsql as $$
begin
    insert into search_outbox (job_id, job_posted_at)
    select j.id, coalesce(j.posted_at, j.created_at)
    from jobs j
    where j.id in (select t.job_id from touched t) and j.closed_at is null
    on conflict (job_id) do nothing;
    return null;
end
$$;

-- An existing freehire database has such a trigger under a name of its own; one is enough. It is known by its doing:
-- fired by inserts (bit 4), it speaks of the table or is handed the new rows.
do $$
begin
    if not exists (
        select from pg_trigger t
        join pg_proc p on p.oid = t.tgfoid
        where t.tgrelid = 'job_semantic_chunks'::regclass
            and not t.tgisinternal
            and t.tgtype & 4 <> 0
            and (t.tgnewtable is not null or p.prosrc ilike '%search_outbox%')
    ) then
        create trigger enqueue_search_of_embedded
        after insert on job_semantic_chunks
        referencing new table as touched
        for each statement execute function enqueue_search_of_embedded();
    end if;
end
$$;
