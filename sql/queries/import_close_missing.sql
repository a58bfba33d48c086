-- Closes what the files' sources do not list any more. Other sources are none of the files' business.
update jobs j
set closed_at = now(), updated_at = now()
where j.closed_at is null
    and j.source in (select source from pg_temp.freehire_embed_seen)
    and not exists (
        select from pg_temp.freehire_embed_seen s where s.source = j.source and s.external_id = j.external_id
    )
