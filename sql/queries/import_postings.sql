-- One batch of a file, by (source, external_id). Of a key that comes twice the last one counts. A row that is as it
-- was stays untouched, so that importing the same file again writes nothing.
-- A fresh row has no xmax: that tells added from updated.
with given as (
    select distinct on (source, external_id) *
    from unnest(
        %(sources)s::text[], %(external_ids)s::text[], %(urls)s::text[], %(titles)s::text[], %(companies)s::text[],
        %(company_slugs)s::text[], %(descriptions)s::text[], %(public_slugs)s::text[], %(posted)s::timestamptz[],
        %(tech)s::boolean[], %(closed)s::timestamptz[], %(hashes)s::text[]
    ) with ordinality as p (
        source, external_id, url, title, company, company_slug, description, public_slug, posted_at, is_tech,
        closed_at, content_hash, place
    )
    order by source, external_id, place desc
)
insert into jobs as j (
    source, external_id, url, title, company, company_slug, description, public_slug, posted_at, is_tech, closed_at,
    content_hash
)
select
    source, external_id, url, title, company, company_slug, description, public_slug, posted_at, is_tech, closed_at,
    content_hash
from given
on conflict (source, external_id) do update
set url = excluded.url,
    title = excluded.title,
    company = excluded.company,
    company_slug = excluded.company_slug,
    description = excluded.description,
    posted_at = excluded.posted_at,
    is_tech = excluded.is_tech,
    closed_at = excluded.closed_at,
    content_hash = excluded.content_hash,
    updated_at = now(),
    last_seen_at = now()
where (j.url, j.title, j.company, j.description, j.posted_at, j.is_tech, j.closed_at, j.content_hash)
    is distinct from (
        excluded.url, excluded.title, excluded.company, excluded.description, excluded.posted_at, excluded.is_tech,
        excluded.closed_at, excluded.content_hash
    )
returning j.xmax = 0 as added
