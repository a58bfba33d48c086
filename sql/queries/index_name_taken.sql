select to_regclass('public.' || quote_ident(%(name)s)) is not null as taken
