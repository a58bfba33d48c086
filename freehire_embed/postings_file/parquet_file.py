"""The rows of Parquet, value by value: a table of another library would make floats of integers beside a null."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from freehire_embed.postings_file.layout import MAX_ROW_BYTES, NOT_UTF8, BadLine, ImportFileError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from freehire_embed.posting import Fields
    from freehire_embed.postings_file.layout import Columns
    from freehire_embed.postings_file.source import Source

_ROWS_AT_ONCE = 500
_LARGE_GROUP_BYTES = 64 * 1024 * 1024
_LARGE_ROW_BYTES = 128 * 1024
"""Rows of this size on average are no postings; a group of them is unpacked as a whole, and is not read."""


class _Unreadable:
    """A value that its own type does not allow, such as a date after the year 9999."""


def parquet_rows(source: Source, columns: Columns) -> Iterator[tuple[int, Fields] | BadLine]:
    """The fields of each row with its number. Raises ImportFileError."""
    try:
        import pyarrow  # type: ignore[import-untyped]
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportFileError(
            f"{source.path}: Parquet needs a package more: in the checkout: "
            "pip install -c constraints.txt -e '.[parquet]'"
        ) from error
    number = 0
    try:
        schema = pyarrow.parquet.read_schema(source.path)
        names = schema.names
        # Texts stay packed until their row is read: a page may hold one of them a million times.
        texts = [name for name in columns.taken(names) if schema.field(name).type in _texts(pyarrow)]
        with pyarrow.parquet.ParquetFile(source.path, read_dictionary=texts) as file:
            if lacking := columns.lacking(names):
                raise ImportFileError(f"{source.path} {lacking}")
            taken = columns.taken(names)
            for name in set(names) - set(taken):
                columns.leave(name)
            for group in range(file.num_row_groups):
                rows = file.metadata.row_group(group).num_rows
                if _is_oversized(file.metadata.row_group(group), taken):
                    yield _oversized(number, rows)
                    number += rows
                    continue
                for batch in file.iter_batches(_ROWS_AT_ONCE, row_groups=[group], columns=taken):
                    for place in range(batch.num_rows):
                        number += 1
                        yield _row(number, batch, place, columns)
    except pyarrow.ArrowException as error:
        raise ImportFileError(f"{source.path} is not a readable Parquet file (after row {number})") from error


def _texts(pyarrow: Any) -> tuple[Any, ...]:
    return pyarrow.string(), pyarrow.large_string(), pyarrow.binary(), pyarrow.large_binary()


def _is_oversized(group: Any, taken: list[str]) -> bool:
    parts = [group.column(place) for place in range(group.num_columns)]
    size = sum(part.total_uncompressed_size for part in parts if part.path_in_schema.split(".")[0] in taken)
    return bool(size > _LARGE_GROUP_BYTES and size > group.num_rows * _LARGE_ROW_BYTES)


def _oversized(number: int, rows: int) -> BadLine:
    reason = f"rows {number + 1} to {number + rows} are one group of too large values: leave these out"
    return BadLine(number + 1, reason, "row")


def _row(number: int, batch: Any, place: int, columns: Columns) -> tuple[int, Fields] | BadLine:
    try:
        record = {name: _value(batch.column(name)[place]) for name in batch.schema.names}
    except UnicodeDecodeError:
        return BadLine(number, NOT_UTF8, "row")
    if sum(len(value) for value in record.values() if isinstance(value, str)) > MAX_ROW_BYTES:
        return BadLine(number, f"longer than {MAX_ROW_BYTES} characters", "row")
    row = columns.row(record)
    return BadLine(number, row, "row") if isinstance(row, str) else (number, row)


def _value(scalar: Any) -> Any:
    try:
        value = scalar.as_py()
    except UnicodeDecodeError:
        raise
    except (ValueError, ArithmeticError, TypeError, NotImplementedError):
        return _Unreadable()
    # Some writers do not say that their bytes are text.
    return value.decode() if isinstance(value, bytes) else value
