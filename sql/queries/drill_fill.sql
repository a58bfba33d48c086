-- A catalogue of n eligible postings, the first the freshest. Number `poisoned` (null = none) carries the marker.
insert into jobs (source, external_id, url, title, company, description, public_slug, posted_at, is_tech, content_hash)
select 'drill', n, 'https://jobs.example/' || n, 'Drill engineer ' || n, 'Northwind',
    '<p>We build bridges, number ' || n || case when n = %(poisoned)s::int then ' ' || %(marker)s else '' end || '.</p>',
    'drill-' || n, timestamptz '2026-01-01' - n * interval '1 minute', true, 'hash-' || n
from generate_series(1, %(postings)s::int) n
