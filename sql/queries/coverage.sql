-- Eligible is counted index-only; stale is what enqueue would find among the eligible, by the same partial
-- indexes; covered is the difference.
with stale as (
    select id from jobs
    where closed_at is null and duplicate_of is null and is_tech and not is_private
        and semantic_embedded_model is null
    union all
    select id from jobs
    where closed_at is null and duplicate_of is null and is_tech and not is_private
        and semantic_embedded_model < %(model)s
    union all
    select id from jobs
    where closed_at is null and duplicate_of is null and is_tech and not is_private
        and semantic_embedded_model > %(model)s
    union all
    select id from jobs
    where closed_at is null and duplicate_of is null and is_tech and not is_private
        and semantic_embedded_hash is distinct from content_hash
        and semantic_embedded_model is not distinct from %(model)s
)
select
    (
        select count(*) from jobs
        where closed_at is null and duplicate_of is null and is_tech and not is_private
    ) as eligible,
    (select count(*) from stale) as stale
