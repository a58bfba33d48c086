-- What a setting of the server is for this session, and where it comes from (see ALTER ROLE ... SET and its like).
select name, current_setting(name) as value, source, current_user::text as role, current_database()::text as database,
    case when unit = 'ms' then setting::float8 / 1000 end as seconds
from pg_settings
where name = any(%(names)s::text[]) and setting not in ('0', 'off')
order by name
