-- Begins a transaction. Whatever we rely on is set for this transaction alone: behind a transaction pooler the next one
-- runs on another server connection, and a setting left on this one would be somebody else's. One message with the
-- BEGIN, so that it costs no round trip of its own.
-- The time-outs end what a killed client left behind. Everything lies in `public`, and pgvector where it was installed:
-- a role's own search_path may name neither. Temporary tables come last: another client of the pooler may have left one
-- with a name of ours. Formats are those that the driver reads and writes, whatever PGDATESTYLE
-- or the role say. Isolation is the one that the statements are written for: row locks see the newest version.
begin isolation level read committed;
select
    set_config('search_path', concat_ws(', ', 'public', v.schema, 'pg_temp'), true) as search_path,
    set_config('idle_in_transaction_session_timeout', '60s', true) as idle,
    set_config('lock_timeout', '20s', true) as locks,
    set_config('datestyle', 'ISO, YMD', true) as dates,
    set_config('array_nulls', 'on', true) as nulls
from (
    select (
        select quote_ident(n.nspname)
        from pg_catalog.pg_extension e
        join pg_catalog.pg_namespace n on n.oid = e.extnamespace
        where e.extname = 'vector' and n.nspname <> 'public'
    ) as schema
) v
