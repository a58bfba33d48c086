-- By language, the passages of a run that were longer than the model takes: the server cuts them and says nothing.
alter table semantic_runs add column if not exists over_limit jsonb not null default '{}';
