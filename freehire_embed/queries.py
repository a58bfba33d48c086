"""The statements of `sql/queries`, by file name.

No SQL text stands in Python: a statement is found under the verb that runs it, with the reason for its shape
on top, and can be pasted into psql.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PACKAGED = Path(__file__).parent / "sql"
SQL_DIR = _PACKAGED if _PACKAGED.is_dir() else Path(__file__).parent.parent / "sql"


@cache
def query(name: str) -> bytes:
    """The text of sql/queries/`name`.sql, parameters as %(name)s. Raises FileNotFoundError for a wrong name."""
    return (SQL_DIR / "queries" / f"{name}.sql").read_bytes()
