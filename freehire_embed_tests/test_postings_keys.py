"""Keys of postings are exact in every format, or the row is bad: two postings never become one."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from freehire_embed.posting import Posting
from freehire_embed.postings_file import BadLine, Layout, read_postings

if TYPE_CHECKING:
    from pathlib import Path

BIG = 2**53 + 1  # the first whole number that no float is


def keys(path: Path) -> list[str]:
    """The key of each posting, '' for a bad row."""
    return [row.external_id if isinstance(row, Posting) else "" for row in read_postings(path)]


def parquet(path: Path, ids: Any, **columns: Any) -> Path:
    size = len(ids)
    table = {"id": ids, "title": [f"t{n}" for n in range(size)], "description": ["d"] * size, **columns}
    pq.write_table(pa.table(table), path / "p.parquet")
    return path / "p.parquet"


def lines(path: Path, *ids: str) -> Path:
    rows = [f'{{"id": {key}, "title": "t{place}", "description": "d"}}\n' for place, key in enumerate(ids)]
    (path / "p.jsonl").write_text("".join(rows))
    return path / "p.jsonl"


@pytest.mark.parametrize("place", [0, 1, 2, 600])
@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.uint64(), pa.decimal128(20, 0), pa.decimal128(38, 2), pa.string()]
)
def test_keys_of_parquet_are_exact_wherever_a_null_stands(
    tmp_path: Path, kind: pa.DataType, place: int
) -> None:
    given: list[int | None] = [BIG + n for n in range(601)]
    given[place] = None
    values = pa.array([None if n is None else str(n) for n in given]).cast(kind)
    found = keys(parquet(tmp_path, values))
    assert found[place].startswith("sha256:")
    assert [key for n, key in enumerate(found) if n != place] == [str(n) for n in given if n is not None]


def test_keys_of_other_parquet_types_are_what_they_say(tmp_path: Path) -> None:
    dictionary = pa.array(["007", "7", None, "007x"]).dictionary_encode()
    assert keys(parquet(tmp_path, dictionary))[::3] == ["007", "007x"]
    assert keys(parquet(tmp_path, pa.array([2**64 - 1, 2**64 - 2], pa.uint64()))) == [
        str(2**64 - 1),
        str(2**64 - 2),
    ]
    assert keys(parquet(tmp_path, pa.array([b"a-1", b"\xff"], pa.binary()))) == ["a-1", ""]
    identifier = UUID("12345678-1234-5678-1234-567812345678")
    assert keys(parquet(tmp_path, pa.array([identifier.bytes], pa.uuid()))) == [str(identifier)]


def test_a_key_inside_a_structure_is_exact_too(tmp_path: Path) -> None:
    nested = pa.array([{"key": BIG}, {"key": None}, {"key": BIG - 1}], pa.struct({"key": pa.int64()}))
    path = parquet(tmp_path, [1, 2, 3], job=nested)
    found = [row.external_id for row in read_postings(path, Layout({"external_id": "job.key"}))]  # type: ignore[union-attr]
    assert found == [str(BIG), "2", str(BIG - 1)]


def test_floats_that_may_have_lost_digits_are_no_keys(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": [BIG, BIG - 1, None, 42.0], "title": ["t"] * 4, "description": ["d"] * 4})
    frame.to_parquet(tmp_path / "p.parquet")
    assert [bool(key) for key in keys(tmp_path / "p.parquet")] == [False, False, True, True]
    assert keys(tmp_path / "p.parquet")[3] == "42"
    frame.to_csv(tmp_path / "p.csv", index=False)
    assert [bool(key) for key in keys(tmp_path / "p.csv")] == [False, False, True, True]
    assert keys(tmp_path / "p.csv")[3] == "42"


def test_a_data_frame_writes_the_same_keys_and_dates_into_every_format(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "id": [3812345678.0, None],
            "title": ["t", "u"],
            "description": ["d", "d"],
            "posted_at": [1713279461000.0, None],
        }
    )
    frame.to_csv(tmp_path / "p.csv", index=False)
    frame.to_parquet(tmp_path / "p.parquet")
    frame.to_json(tmp_path / "p.jsonl", orient="records", lines=True)
    for name in ("p.csv", "p.parquet", "p.jsonl"):
        first, second = read_postings(tmp_path / name)
        assert isinstance(first, Posting)
        assert isinstance(second, Posting)
        assert (first.external_id, first.posted_at_unreadable) == ("3812345678", False)
        assert first.posted_at
        assert first.posted_at.isoformat() == "2024-04-16T14:57:41+00:00"
        assert second.external_id.startswith("sha256:")


def test_integers_of_any_length_are_keys_of_their_own(tmp_path: Path) -> None:
    given = ["18446744073709551616", "18446744073709551617", str(BIG), "1" + "0" * 400]
    assert keys(lines(tmp_path, *given)) == given
    path = tmp_path / "p.json"
    path.write_text("[" + ",".join(lines(tmp_path, *given).read_text().splitlines()) + "]")
    assert keys(path) == given
    assert keys(lines(tmp_path, "1" * 5000)) == [""]


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("42.0", "42"),
        ("1e3", "1000"),
        ("1.5", "1.5"),
        (f"{BIG}.0", ""),
        ("1e400", ""),
        ("0.12345678901234567", ""),
        ('"1.0"', "1.0"),
        ('" 007 "', "007"),
        ('"12e5"', "12e5"),
        ('"3.81235E+11"', ""),
        ('"1e+16"', ""),
        (r'"a\u0000b"', ""),
        (r'"\ud800"', ""),
        ("true", ""),
    ],
)
def test_a_key_is_what_is_written_or_the_row_is_bad(tmp_path: Path, written: str, key: str) -> None:
    assert keys(lines(tmp_path, written)) == [key]


def test_the_reason_says_what_to_do_about_the_key(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    long = "1" * 5000
    path.write_text(
        f"id,title,description\n3.8E+11,t,d\n9007199254740992.0,t,d\n5.0,t,d\n1.0.0,t,d\n{long}.0,t,d\n"
    )
    first, second, third, fourth, last = read_postings(path)
    assert isinstance(last, BadLine)
    assert isinstance(first, BadLine)
    assert first.reason.startswith("id is written like 1.2E+11")
    assert isinstance(second, BadLine)
    assert "export it as text" in second.reason
    assert [row.external_id for row in (third, fourth) if isinstance(row, Posting)] == ["5", "1.0.0"]


def test_dates_that_python_cannot_hold_spoil_no_other_row(tmp_path: Path) -> None:
    far = pa.array([2**62, 0, 1_713_279_461_000_000], pa.timestamp("us"))
    first, second, third = read_postings(parquet(tmp_path, [1, 2, 3], posted_at=far))
    assert all(isinstance(row, Posting) for row in (first, second, third))
    assert [row.posted_at_unreadable for row in (first, second, third)] == [True, True, False]  # type: ignore[union-attr]
    closed, *_ = read_postings(parquet(tmp_path, [1, 2, 3], closed_at=far))
    assert closed == BadLine(1, "closed_at is not a date", "line")


def test_a_date_of_any_zone_and_unit_is_read(tmp_path: Path) -> None:
    for kind in (
        pa.timestamp("ns", "Europe/Berlin"),
        pa.timestamp("ns"),
        pa.timestamp("us", "+02:00"),
        pa.date32(),
    ):
        when = pa.array([1_713_279_461], pa.int64()).cast(pa.timestamp("s")).cast(kind)
        (row,) = read_postings(parquet(tmp_path, [1], posted_at=when))
        assert isinstance(row, Posting)
        assert row.posted_at
        assert row.posted_at.isoformat().startswith("2024-04-16T")


def test_a_decimal_is_a_number_like_any_other(tmp_path: Path) -> None:
    ids = pa.array([Decimal("12.00"), Decimal("12.50")], pa.decimal128(10, 2))
    assert keys(parquet(tmp_path, ids)) == ["12", "12.50"]


def test_a_number_too_large_for_a_date_is_told_and_the_file_goes_on(tmp_path: Path) -> None:
    rows = [{"title": "t", "description": "d", "id": n, "posted_at": 1e20} for n in range(2)]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = list(read_postings(tmp_path / "p.jsonl"))
    assert [row.posted_at_unreadable for row in found if isinstance(row, Posting)] == [True, True]
