-- Identities that this database was embedded with before it remembered any: superseded by the one promoted now,
-- so that their workers cannot undo it.
insert into semantic_models (identity, width, promoted_at)
select distinct semantic_embedded_model, %(width)s, timestamptz '1970-01-01 00:00:00+00'
from jobs
where semantic_embedded_model is not null
on conflict (identity) do nothing
