-- Grouped by cause: the error with its numbers and quoted parts taken out, since they differ from row to row.
select regexp_replace(regexp_replace(last_error, '"[^"]*"', '"…"', 'g'), '\d+', 'N', 'g') as cause,
    count(*) as entries,
    min(failed_at) as first_failed_at,
    max(failed_at) as last_failed_at,
    (array_agg(id order by failed_at desc))[1:3] as examples
from semantic_outbox
where failed_at is not null
group by 1
order by count(*) desc, 1
