-- Looks through the next postings by id for lists to be filled again: half of the neighbours may not be shown any
-- more, or there never were enough and the catalogue has had a day to grow. A model change makes no list thin.
with slice as (
    select id, similar_job_ids as neighbours, similar_computed_at as computed_at
    from jobs
    where id > %(after)s
        and closed_at is null and duplicate_of is null and is_tech and semantic_embedded_model = %(model)s
        and similar_computed_at is not null
    order by id
    limit %(limit)s
), counted as (
    select s.id, s.computed_at, coalesce(cardinality(s.neighbours), 0) as had,
        (
            select count(*)
            from jobs j
            where j.id = any(s.neighbours)
                and j.closed_at is null and j.duplicate_of is null and j.is_tech and not j.is_private
        ) as has
    from slice s
), thin as (
    update jobs j
    set similar_computed_at = null
    from counted c
    where j.id = c.id
        and j.similar_computed_at = c.computed_at
        and (c.has * 2 < c.had or (c.has < %(enough)s and c.computed_at < now() - interval '1 day'))
    returning j.id
)
select (select max(id) from slice) as last, (select count(*) from thin) as thin
