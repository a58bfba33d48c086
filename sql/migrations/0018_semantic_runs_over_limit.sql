-- By language, the passages of a run that were longer than the model takes: the server cuts them and says nothing.
do $$
begin
    if not exists (
        select from pg_attribute
        where attrelid = 'semantic_runs'::regclass and attname = 'over_limit' and not attisdropped
    ) then
        alter table semantic_runs add column if not exists over_limit jsonb not null default '{}';
    end if;
end
$$;
