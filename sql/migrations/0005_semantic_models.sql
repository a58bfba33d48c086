-- The identities this database has been embedded with. The newest promoted one is the target; a superseded one
-- is refused, so that a forgotten worker cannot undo a re-embed. The probe vector is what the server answered
-- to the fixed probe text at promotion: a foreign model behind the same URL does not reproduce it.
create table if not exists semantic_models (
    identity text primary key,
    width integer not null,
    promoted_at timestamptz not null default now(),
    probe real[]
);
