"""The embedded default: what a machine that has neither Postgres nor a model server needs to run everything.

``postgres`` starts a real PostgreSQL with pgvector in a data folder, ``model_server`` puts a small model behind
the HTTP API of Text Embeddings Inference, and ``POSTINGS`` is the file of invented postings that the demo loads.
The packages behind them come with the extra ``local`` and are imported only when they are used.
"""

from pathlib import Path

POSTINGS = Path(__file__).with_name("postings.jsonl")
"""The bundled postings, readable by ``postings_file.read_postings``."""
