-- As the planner estimates; -1 = never analyzed.
select greatest(reltuples, 0)::float8 as postings from pg_class where oid = to_regclass('jobs')
