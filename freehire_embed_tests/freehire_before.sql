-- A freehire database as it stands before our first migration: the same tables without our columns, its own
-- trigger and a claim index in the wrong order.
create table jobs (
    id bigint generated always as identity primary key,
    source text not null,
    external_id text not null,
    url text not null,
    title text not null,
    company text not null default '',
    company_slug text not null default '',
    description text not null default '',
    public_slug text not null unique,
    posted_at timestamptz,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    last_seen_at timestamptz not null default now(),
    closed_at timestamptz,
    duplicate_of bigint references jobs (id),
    is_tech boolean,
    is_private boolean not null default false,
    content_hash text,
    semantic_embedded_model text,
    semantic_embedded_hash text,
    semantic_embedding real[],
    unique (source, external_id)
);
create table semantic_outbox (
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
create index semantic_outbox_claimable on semantic_outbox (job_posted_at desc, job_id desc) where failed_at is null;
create table job_semantic_chunks (
    job_id bigint not null references jobs (id) on delete cascade,
    chunk_index smallint not null,
    embedding vector(8) not null,
    primary key (job_id, chunk_index)
);
create table search_outbox (
    id bigint generated always as identity primary key,
    job_id bigint not null unique references jobs (id) on delete cascade,
    attempts integer not null default 0,
    claimed_at timestamptz,
    failed_at timestamptz,
    last_error text not null default '',
    created_at timestamptz not null default now(),
    job_posted_at timestamptz
);
create function chunks_to_search() returns trigger language plpgsql as $$
begin
    insert into search_outbox (job_id, job_posted_at)
    select id, coalesce(posted_at, created_at) from jobs
    where id in (select job_id from inserted) and closed_at is null
    on conflict (job_id) do nothing;
    return null;
end
$$;
create trigger chunks_to_search after insert on job_semantic_chunks
referencing new table as inserted for each statement execute function chunks_to_search();
