"""Everything that runs queries: one typed method a statement, one file a group of tables.

`database.py` connects and tells the faults of Postgres apart; `outbox.py` is the queue; `commit.py` writes a
finished wave; `identities.py`, `runs.py` and `coverage.py` are the bookkeeping around them.
"""
