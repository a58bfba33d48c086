-- Closes what the files' sources do not list any more. Other sources are none of the files' business.
update jobs j
set closed_at = now(), updated_at = now()
where j.closed_at is null
    and j.source in (select source from import_keys)
    and not exists (
        select from import_keys k where k.source = j.source and k.external_id = j.external_id
    )
