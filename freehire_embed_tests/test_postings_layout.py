"""Files of other people: other names of columns, lists inside of documents, standard input, other delimiters."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from freehire_embed.posting import Posting
from freehire_embed.postings_file import STANDARD_INPUT, BadLine, ImportFileError, Layout, read_postings

ROWS = [{"title": "Baker", "description": "[bread], {rolls}"}, {"title": 'a "b" \\', "description": "c\\"}]
TITLES = ["Baker", 'a "b" \\']


def titles(path: Path, **layout: Any) -> list[str]:
    rows = list(read_postings(path, Layout(**layout)))
    assert [row for row in rows if isinstance(row, BadLine)] == []
    return [row.title for row in rows if isinstance(row, Posting)]


def written(path: Path, name: str, content: str | bytes | Any) -> Path:
    file = path / name
    if not isinstance(content, str | bytes):
        content = json.dumps(content)
    raw = content if isinstance(content, bytes) else content.encode()
    file.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return file


Piped = Callable[[bytes], Path]


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Iterator[Piped]:
    """Standard input that holds some bytes, as a pipe does."""
    with ExitStack() as stack:

        def pipe(content: bytes) -> Path:
            reading, writing = os.pipe()
            os.write(writing, content)
            os.close(writing)
            monkeypatch.setattr("sys.stdin", stack.enter_context(os.fdopen(reading)))
            return STANDARD_INPUT

        yield pipe


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["p.json", "p.json.gz", "p.jsonl"])
def test_a_json_list_is_read_however_it_is_laid_out(tmp_path: Path, name: str, indent: int | None) -> None:
    assert titles(written(tmp_path, name, json.dumps(ROWS, indent=indent))) == TITLES
    assert titles(written(tmp_path, name, "[ ]")) == []


@pytest.mark.parametrize(
    ("document", "records"),
    [
        ({"jobs": ROWS}, "jobs"),
        ({"meta": {"jobs": [1, {"jobs": []}]}, "jobs": ROWS, "more": [[], {}]}, "jobs"),
        ({"data": {"a b": 1, "jobs": ROWS}}, "data.jobs"),
        ([{"jobs": ROWS[:1]}, {"jobs": ROWS[1:]}], "jobs"),
        (ROWS, ""),
        ({"Stellen für Bäcker": ROWS}, "Stellen für Bäcker"),
    ],
)
def test_a_list_inside_a_document_is_found_by_its_path(tmp_path: Path, document: Any, records: str) -> None:
    for indent in (None, 1):
        file = written(tmp_path, "p.json", json.dumps(document, indent=indent))
        assert titles(file, records=records) == TITLES


def test_a_document_is_cut_into_the_same_records_wherever_a_chunk_of_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, "p.json", {"x": ["\\\\", '"'], "jobs": ROWS})
    for size in range(1, 30):
        monkeypatch.setattr("freehire_embed.postings_file.json_file._CHUNK_BYTES", size)
        assert titles(file, records="jobs") == TITLES


def test_a_bad_record_of_a_document_is_numbered_and_the_others_kept(tmp_path: Path) -> None:
    good = json.dumps(ROWS[0])
    file = written(tmp_path, "p.json", f'[{good}, 5, {{"title": nonsense, "description": ""}}, {{}}, {good}]')
    rows = list(read_postings(file))
    assert [row if isinstance(row, BadLine) else "good" for row in rows] == [
        "good",
        BadLine(2, "not a JSON object", "record"),
        BadLine(3, "not valid JSON", "record"),
        BadLine(4, rows[3].reason, "record"),  # type: ignore[union-attr]
        "good",
    ]


@pytest.mark.parametrize(
    "broken", ['[{"title"', '[{"title": "t"}, {"tit', '[{"a": [}]', "[1]]", '["\\', "[5" + "[" * 10**5]
)
def test_a_document_that_breaks_off_is_refused_after_what_came_before(tmp_path: Path, broken: str) -> None:
    with pytest.raises(ImportFileError, match=r"is not valid JSON: .*\(after record"):
        list(read_postings(written(tmp_path, "p.json", broken)))


@pytest.mark.parametrize(
    "document", [{"meta": {}, "data": {"jobs": ROWS}}, {"data": {"jobs": ROWS}, "title": "x"}]
)
def test_a_document_names_its_lists_where_none_is_asked_for(tmp_path: Path, document: Any) -> None:
    for indent in (None, 2):
        file = written(tmp_path, "p.json", json.dumps(document, indent=indent))
        with pytest.raises(ImportFileError, match=r"say which list holds them, such as --records data\.jobs"):
            list(read_postings(file))
        with pytest.raises(ImportFileError, match=r"no list under --records job; .*data\.jobs"):
            list(read_postings(file, Layout(records="job")))


def test_a_document_nested_without_end_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match="nested more than"):
        list(read_postings(written(tmp_path, "p.json", '{"a":' + "[" * 10**6), Layout(records="jobs")))


def test_a_json_file_of_one_object_a_line_is_read_as_lines(tmp_path: Path) -> None:
    assert titles(written(tmp_path, "p.json", "\n".join(json.dumps(row) for row in ROWS))) == TITLES
    assert titles(written(tmp_path, "p.json", {**ROWS[0], "tags": ["a"]})) == TITLES[:1]


def test_records_are_asked_for_in_json_only(tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match="is CSV: --records is for"):
        list(read_postings(written(tmp_path, "p.csv", "title,description\n"), Layout(records="jobs")))


@pytest.mark.parametrize(
    "content",
    [
        b"\n".join(json.dumps(row).encode() for row in ROWS),
        json.dumps(ROWS).encode(),
        gzip.compress(json.dumps(ROWS).encode()),
        b"\xef\xbb\xbf" + json.dumps(ROWS).encode(),
        b'title,description\nBaker,bread\n"a ""b"" \\",c\n',
        gzip.compress(b'title,description\nBaker,bread\n"a ""b"" \\",c\n'),
    ],
)
def test_standard_input_is_read_as_what_it_begins_with(content: bytes, piped: Piped) -> None:
    assert titles(piped(content)) == TITLES


def test_standard_input_may_be_a_document_and_not_parquet(piped: Piped) -> None:
    assert titles(piped(json.dumps({"jobs": ROWS}).encode()), records="jobs") == TITLES
    with pytest.raises(ImportFileError, match="save it to a file"):
        list(read_postings(piped(b"PAR1")))


def test_columns_of_other_names_are_mapped_in_every_format(tmp_path: Path) -> None:
    mapped = {
        "title": "Job Title",
        "description": "posted_job_text",
        "external_id": "no",
        "company": "firm.name",
    }
    row = {
        "job title ": "Baker",
        "posted_job_text": "d",
        "no": "7",
        "id": "9",
        "title": "other",
        "firm": {"name": "Ofen"},
    }
    pd.DataFrame([row]).to_parquet(tmp_path / "p.parquet")
    written(tmp_path, "p.jsonl", row)
    written(tmp_path, "p.csv", "JOB TITLE,posted_job_text,no,id,title,firm.name\nBaker,d,7,9,other,Ofen\n")
    for name in ("p.csv", "p.jsonl", "p.parquet"):
        not_taken: set[str] = set()
        (found,) = read_postings(tmp_path / name, Layout(mapped), not_taken)
        assert isinstance(found, Posting)
        assert (found.title, found.external_id, found.company) == ("Baker", "7", "Ofen")
        assert not_taken == {"title"}


@pytest.mark.parametrize("name", ["p.csv", "p.jsonl", "p.parquet"])
def test_a_mapped_key_that_is_not_there_makes_no_other_key(tmp_path: Path, name: str) -> None:
    pd.DataFrame([{**ROWS[0], "id": 5}]).to_parquet(tmp_path / "p.parquet")
    written(tmp_path, "p.jsonl", {**ROWS[0], "id": 5})
    written(tmp_path, "p.csv", "title,description,id\nBaker,d,5\n")
    try:
        (bad,) = read_postings(tmp_path / name, Layout({"external_id": "jobid"}))
    except ImportFileError as error:
        reason = str(error)
    else:
        assert isinstance(bad, BadLine)
        reason = bad.reason
    assert "jobid; its" in reason
    assert "--map external_id=" in reason


def test_other_columns_are_told_once_each(tmp_path: Path) -> None:
    not_taken: set[str] = set()
    rows = [{**ROWS[0], "salary": 1, "Colour": 2}, {**ROWS[1], "salary": 3, "x" * 500: 1}]
    list(read_postings(written(tmp_path, "p.json", rows), None, not_taken))
    assert not_taken == {"salary", "Colour", "x" * 60 + "…"}
    many = [{**ROWS[0], str(number): 1} for number in range(1000)]
    list(read_postings(written(tmp_path, "p.json", many), None, not_taken))
    assert len(not_taken) == 50


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            "position,text",
            r"no column title and no description; its columns are: position, text \(delimiter ','\); "
            r"say which to take: --map title=\.\.\. --map description=\.\.\.",
        ),
        ("title;description", r"columns are: title;description \(delimiter ','; perhaps --delimiter ';'\)"),
        ("title\tdescription", r"perhaps --delimiter tab"),
    ],
)
def test_a_header_without_the_columns_says_what_would_do(tmp_path: Path, header: str, message: str) -> None:
    with pytest.raises(ImportFileError, match=message):
        list(read_postings(written(tmp_path, "p.csv", f"{header}\n")))


def test_another_delimiter_is_read(tmp_path: Path) -> None:
    for delimiter in ";\t|":
        file = written(tmp_path, "p.csv", f'title{delimiter}description\n"a{delimiter}b"{delimiter}c,d\n')
        assert titles(file, delimiter=delimiter) == [f"a{delimiter}b"]
