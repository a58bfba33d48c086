"""Keeps the vectors of a Postgres catalogue equal to its text.

The tour, in the order in which the data goes:

- enqueue: find postings whose vectors are missing or stale (`sql/queries/enqueue.sql`)
- claim: take a wave of entries under a lease (`lease.py`)
- chunk: HTML to text to passages (`text/`, `chunks.py`)
- embed: passages to vectors on a TEI server (`tei/`)
- commit: vectors, stamps and queue rows in one transaction (`store/`)

`stages.py` holds the five verbs; `drain.py` runs them from cron, `orchestration/` runs them in Dagster.
"""
