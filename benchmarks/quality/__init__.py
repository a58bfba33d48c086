"""How good the answers are: rule v1 against rule v2 by language, and the index against comparing everything.

    python -m benchmarks.quality.retrieval postings.jsonl.gz     queries made from postings, found again or not
    python -m benchmarks.quality.neighbours postings.jsonl.gz    index against exact, time of similar postings

docs/quality.md has the figures.
"""
