-- How many entries a run of this model could claim now, counted no further than the limit: leased ones and those that
-- wait out a failed attempt's lease are no work for a new run.
select count(*) as claimable
from (
    select from semantic_outbox
    where failed_at is null
        and (claimed_at is null or claimed_at < now() - make_interval(secs => %(lease)s))
        and target_model = %(model)s
        and (%(since)s::timestamptz is null or job_posted_at >= %(since)s)
        and (%(until)s::timestamptz is null or job_posted_at < %(until)s)
    limit %(limit)s
) free
