-- Every identity known to this database with the postings stamped by it, the target first.
select m.identity, m.width, m.promoted_at,
    (select count(*) from jobs j where j.semantic_embedded_model = m.identity) as stamped
from semantic_models m
order by m.promoted_at desc, m.identity
