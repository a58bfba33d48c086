-- What the runs of the last days cut, by language.
with lately as (
    select passages, over_limit
    from semantic_runs
    where target_model = %(model)s and last_wave_at > now() - make_interval(days => %(days)s)
), by_language as (
    select language, sum(count::bigint) as passages
    from lately, jsonb_each_text(over_limit) as each_language (language, count)
    group by language
)
select
    (select coalesce(sum(passages), 0)::bigint from lately) as passages,
    (select coalesce(jsonb_object_agg(language, passages), '{}') from by_language) as over_limit
