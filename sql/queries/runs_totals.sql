-- What all runs have done since the first. Rows of semantic_runs are never deleted, so the sums only grow.
select coalesce(sum(indexed), 0)::bigint as indexed,
    coalesce(sum(removed), 0)::bigint as removed,
    coalesce(sum(dead_lettered), 0)::bigint as dead_lettered,
    coalesce(sum(passages), 0)::bigint as passages
from semantic_runs
