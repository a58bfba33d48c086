-- Back into the queue with a clean record. Only rows that are still dead, so a second call finds none; those of
-- a superseded model stay, since nobody would ever claim them.
update semantic_outbox
set failed_at = null, attempts = 0, claims = 0, claimed_at = null, claimed_by = null, claimed_by_at = null,
    last_error = '', failed_hash = null
where failed_at is not null
    and target_model = %(model)s
    and (%(entries)s::bigint[] is null or id = any(%(entries)s))
    and (%(posting)s::bigint is null or job_id = %(posting)s)
    and (%(cause)s::text is null or strpos(lower(last_error), lower(%(cause)s)) > 0)
    and (%(older_than)s::float8 is null or failed_at < now() - make_interval(secs => %(older_than)s))
returning id
