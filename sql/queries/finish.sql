delete from semantic_outbox where id = any(%(ids)s)
