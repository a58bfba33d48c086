"""A file that unpacks to far more than any posting: a bad line, the others kept, the memory bounded."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tracemalloc
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from freehire_embed.posting import Posting
from freehire_embed.postings_file import (
    BadLine,
    csv_file,
    json_document,
    json_file,
    parquet_file,
    read_postings,
)

if TYPE_CHECKING:
    from pathlib import Path

LIMIT = 10_000
HUGE = 500_000


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (json_file, json_document, csv_file, parquet_file):
        monkeypatch.setattr(module, "MAX_ROW_BYTES", LIMIT)
    monkeypatch.setattr(parquet_file, "_LARGE_GROUP_BYTES", LIMIT)


def read(path: Path) -> list[Any]:
    """'good' or the bad line of each row; less than the huge value is in memory."""
    tracemalloc.start()
    try:
        rows = ["good" if isinstance(row, Posting) else row for row in read_postings(path)]
        assert tracemalloc.get_traced_memory()[1] < HUGE
    finally:
        tracemalloc.stop()
    return rows


def packed(path: Path, name: str, *pieces: str) -> Path:
    with gzip.open(path / name, "wt", compresslevel=1, newline="") as file:
        for piece in pieces:
            for place in range(0, len(piece), 1 << 20):
                file.write(piece[place : place + (1 << 20)])
    return path / name


@pytest.mark.parametrize("filling", ["x", "\n", ',"",', '""', "a,\n", ',"",\r\n'])
def test_a_field_of_csv_that_never_seems_to_end(tmp_path: Path, filling: str) -> None:
    text = filling * (HUGE // len(filling))
    inner = text.replace('"', '""')
    file = packed(tmp_path, "p.csv.gz", "title,description\na,b\n", f'Huge,"{inner}"\n', 'c,"d\ne"\nf,g\n')
    assert read(file) == ["good", BadLine(3, f"longer than {LIMIT} characters"), "good", "good"]


@pytest.mark.parametrize("rest", ["", "\n", "\r\n", ",more\n", '"quote\n'])
def test_a_bare_field_of_csv_that_never_seems_to_end(tmp_path: Path, rest: str) -> None:
    file = packed(
        tmp_path, "p.csv.gz", "title,description\na,b\n", f"Huge,{'x' * HUGE}{rest}", "c,d,e\nf,g\n"
    )
    rows = read(file)
    assert rows[:2] == ["good", BadLine(3, f"longer than {LIMIT} characters")]
    assert rows[-1] == "good"


def test_the_lines_after_a_long_record_of_csv_keep_their_numbers(tmp_path: Path) -> None:
    long = '"' + "x\n" * LIMIT + '"'
    file = packed(tmp_path, "p.csv.gz", "title,description\n", f"Huge,{long}\n", "c,d\ne,f,g\n")
    assert [row.number for row in read(file) if isinstance(row, BadLine)] == [2, 2 + LIMIT + 2]


@pytest.mark.parametrize("end", ['"}', ""])
def test_a_line_of_json_that_never_seems_to_end(tmp_path: Path, end: str) -> None:
    good = json.dumps({"title": "a", "description": "b"}) + "\n"
    file = packed(tmp_path, "p.jsonl.gz", good, '{"title": "' + "x" * HUGE + end + "\n", good)
    assert read(file) == ["good", BadLine(2, f"longer than {LIMIT} bytes"), "good"]


@pytest.mark.parametrize("filling", ["x", "[", '\\"', "{},", "\\u0041"])
def test_a_record_of_a_json_document_that_never_seems_to_end(tmp_path: Path, filling: str) -> None:
    good = json.dumps({"title": "a", "description": "b"})
    long = '{"title": "' + filling * (HUGE // len(filling)) + '"}'
    file = packed(tmp_path, "p.json.gz", f"[{good}, ", long, f", {good}]")
    assert read(file) == ["good", BadLine(2, f"longer than {LIMIT} bytes", "record"), "good"]


def test_what_stands_around_the_list_of_a_document_fills_no_memory(tmp_path: Path) -> None:
    good = json.dumps({"title": "a", "description": "b"})
    file = packed(tmp_path, "p.json.gz", "[", f"{good}]", " " * HUGE)
    assert read(file) == ["good"]


def test_a_value_of_parquet_that_is_no_posting(tmp_path: Path) -> None:
    table = {"title": ["a", "b", "c"], "description": ["x", "y" * (LIMIT + 1), "z"]}
    pq.write_table(pa.table(table), tmp_path / "p.parquet")
    first, second, third = read_postings(tmp_path / "p.parquet")
    assert second == BadLine(2, f"longer than {LIMIT} characters", "row")
    assert isinstance(first, Posting)
    assert isinstance(third, Posting)


def test_a_group_of_parquet_that_unpacks_to_gigabytes_is_not_unpacked(tmp_path: Path) -> None:
    with pq.ParquetWriter(
        tmp_path / "p.parquet", pa.schema({"title": pa.string(), "description": pa.string()})
    ) as file:
        for text in ("x", "y" * 20 * HUGE, "z"):
            file.write_table(pa.table({"title": ["a", "b"], "description": [text, "text"]}))
    before = pa.total_allocated_bytes()
    rows = read(tmp_path / "p.parquet")
    assert rows[0:2] == rows[3:5] == ["good", "good"]
    assert rows[2].reason.startswith("rows 3 to 4 are one group of too large values")
    assert pa.total_allocated_bytes() - before < 20 * HUGE


def test_a_value_of_parquet_that_repeats_a_million_times_stays_packed(tmp_path: Path) -> None:
    text = "x" * (LIMIT // 2)
    size = 2000
    table = pa.table({"title": ["t"] * size, "description": pa.array([text] * size).dictionary_encode()})
    table = table.cast(pa.schema({"title": pa.string(), "description": pa.string()}))
    pq.write_table(table, tmp_path / "p.parquet")
    del table
    code = (
        "import sys, pyarrow as pa; from pathlib import Path;"
        "from freehire_embed.postings_file import read_postings;"
        "print(sum(1 for _ in read_postings(Path(sys.argv[1]))), pa.default_memory_pool().max_memory())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "p.parquet"], capture_output=True, text=True
    )
    rows, most = map(int, done.stdout.split())
    assert rows == size
    assert most < 20 * len(text) < size * len(text)
