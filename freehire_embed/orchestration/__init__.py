"""The Dagster side, and the only code that imports dagster. No rule of the pipeline lives here.

- ops.py: the five stages as ops; jobs.py: `embed_job` and `backfill_job` made of them
- resources.py: `postgres` and `tei`; lane.py: the open run that the ops of one Dagster run share
- wave_io.py: one value a wave between the ops
- automation.py: the schedule and the depth sensor that start runs; release.py: gives back what a dead run held
- coverage.py: the `semantic_coverage` asset and its checks
- similar.py, audit.py: the `similar_postings` and `vector_audit` assets
- maintenance.py: dead letters back into the queue, old runs out of the history
- instance.py: where a Dagster instance without a database server keeps its files

Dagster reads annotations at run time, so these modules do without `from __future__ import annotations`.
"""
