-- What should be there and is not, or not usable: a concurrent build that failed leaves an invalid index.
select name, to_regclass(name) is null as missing
from unnest(%(names)s::text[]) as expected (name)
where not exists (select from pg_index where indexrelid = to_regclass(name) and indisvalid)
order by name
