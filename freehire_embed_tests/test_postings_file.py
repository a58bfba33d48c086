"""Postings out of files: every format gives the same rows, and a bad row is named without stopping the file."""

import csv
import gzip
import json
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehire_embed import postings_file
from freehire_embed.local import POSTINGS
from freehire_embed.posting import Posting
from freehire_embed.postings_file import BadLine, ImportFileError, read_postings

ROWS: list[dict[str, Any]] = [
    {
        "source": "board",
        "external_id": "00123",
        "url": "https://jobs.example/1",
        "title": 'Baker, "night"\nshift',
        "company": "Ofen",
        "description": "<p>bread,\r\nrolls</p>",
        "posted_at": "2026-01-02T03:04:05+02:00",
        "is_tech": "false",
        "closed_at": "2026-02-01",
        "colour": "unknown columns are ignored",
    },
    {"source": "board", "external_id": "7", "title": "Pilot", "description": "NA"},
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if path.name.endswith(".csv"):
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    elif path.name.endswith(".parquet"):
        pd.DataFrame(rows).to_parquet(path)
    elif path.name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


def read_one(path: Path, row: dict[str, Any]) -> Posting | BadLine:
    (only,) = read_postings(write(path / "rows.jsonl", [row]))
    return only


def posting(path: Path, **fields: Any) -> Posting:
    found = read_one(path, {"title": "Baker", "description": "bread", **fields})
    assert isinstance(found, Posting), found
    return found


@pytest.mark.parametrize("name", ["p.jsonl", "p.NDJSON", "p.jsonl.gz", "p.csv", "p.parquet"])
def test_every_format_gives_the_same_postings(tmp_path: Path, name: str) -> None:
    first, second = read_postings(write(tmp_path / name, ROWS))
    assert first == Posting(
        source="board",
        external_id="00123",
        url="https://jobs.example/1",
        title='Baker, "night"\nshift',
        company="Ofen",
        description="<p>bread,\r\nrolls</p>",
        posted_at=datetime(2026, 1, 2, 1, 4, 5, tzinfo=UTC),
        is_tech=False,
        closed_at=datetime(2026, 2, 1, tzinfo=UTC),
        posted_at_unreadable=False,
    )
    assert isinstance(second, Posting)
    assert (second.description, second.company, second.url) == ("NA", "", "")
    assert (second.is_tech, second.posted_at, second.closed_at) == (True, None, None)


def test_a_compressed_csv_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "p.csv.gz"
    path.write_bytes(gzip.compress("\ufeffTitle , description\nBäcker,Brot\n".encode()))
    (only,) = read_postings(path)
    assert isinstance(only, Posting)
    assert (only.title, only.description, only.source) == ("Bäcker", "Brot", "p")


def test_bad_json_lines_are_numbered_and_the_others_kept(tmp_path: Path) -> None:
    good = b'{"title": "Baker", "description": "secret"}'
    bad = {
        2: (b'{"title": "secret', "not valid JSON"),
        3: (b'["secret"]', "not a JSON object"),
        5: (b'{"title": "secret"}', "has no field description"),
        6: (b"{}", "has no field title and no description"),
        7: (b'{"title": null, "description": "secret"}', "has no title"),
        8: (b'{"title": " ", "description": ""}', "has neither title nor description"),
        9: (b'{"title": ["secret"], "description": ""}', "title is not text"),
        10: (b'{"title": "a", "description": "b", "is_tech": "secret"}', "is_tech is neither true nor false"),
        11: (b'{"title": "a", "description": "b", "closed_at": "secret"}', "closed_at is not a date"),
        12: (b"[" * 100_000, "not valid JSON"),
    }
    path = tmp_path / "p.jsonl"
    path.write_bytes(b"\n".join([good, *(bad[n][0] if n in bad else b" " for n in range(2, 13)), good]))
    rows = list(read_postings(path))
    told = [(row.number, row.reason.split(";")[0]) for row in rows if isinstance(row, BadLine)]
    assert told == [(n, why) for n, (_, why) in bad.items()]
    assert [isinstance(row, Posting) for row in (rows[0], rows[-1])] == [True, True]
    assert len(rows) == len(bad) + 2


def test_bad_csv_lines_are_numbered_as_an_editor_does(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text(
        "title,description\n"
        "too,many,fields\n"
        'Baker,"two\nlines"\n'
        "few\n"
        "\n"
        'Pilot,"a "b" c"\n'
        "Cook,soup\n"
        'Smith,"never closed\n'
    )
    rows = list(read_postings(path))
    assert [(row.number, row.reason[:13]) for row in rows if isinstance(row, BadLine)] == [
        (2, "has 3 fields "),
        (5, "has 1 fields "),
        (7, "not valid CSV"),
        (9, "not valid CSV"),
    ]
    assert [row.title for row in rows if isinstance(row, Posting)] == ["Baker", "Cook"]


def test_a_line_of_another_encoding_is_bad_and_the_others_kept(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_bytes(
        b'{"title": "Caf\xe9", "description": ""}\n' + '{"title": "Café", "description": ""}\n'.encode()
    )
    (tmp_path / "p.csv").write_bytes(
        b'title,description\nCaf\xe9,"two\nlines"\n' + "Café,soup \ufffd\n".encode() + b'Pub,"\xe9\n\xe9"\n'
    )
    for name, numbers in (("p.jsonl", [1]), ("p.csv", [2, 5])):
        rows = list(read_postings(tmp_path / name))
        assert [row for row in rows if isinstance(row, BadLine)] == [BadLine(n, "not UTF-8") for n in numbers]
        assert [row.title for row in rows if isinstance(row, Posting)] == ["Café"]


def test_a_header_of_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_bytes("title,description,x\n".encode("utf-16"))
    with pytest.raises(ImportFileError, match="UTF-8"):
        list(read_postings(tmp_path / "p.csv"))


def test_what_postgres_cannot_store_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(rb'{"title": "a\u0000b \ud83d\ude00 \ud800", "description": "x", "url": NaN}')
    (only,) = read_postings(path)
    assert isinstance(only, Posting)
    assert (only.title, only.description, only.url) == ("ab 😀 \ufffd", "x", "")


@given(st.text(st.characters(), max_size=20), st.text(st.characters(), max_size=20))
def test_any_text_becomes_one_that_can_be_stored(title: str, company: str) -> None:
    row = {"title": title, "description": "x", "company": company}
    found = postings_file._posting(1, row, "s")
    assert isinstance(found, Posting)
    for text in (found.title, found.company, found.company_slug, found.public_slug):
        assert "\0" not in text.encode().decode()


def test_the_key_is_the_id_else_the_url_else_the_text(tmp_path: Path) -> None:
    assert posting(tmp_path, external_id="e", id=5, url="u").external_id == "e"
    assert posting(tmp_path, id=5, url="u").external_id == "5"
    assert posting(tmp_path, url="u").external_id == "u"
    by_text = posting(tmp_path).external_id
    assert by_text.startswith("sha256:")
    assert by_text == posting(tmp_path).external_id != posting(tmp_path, company="Ofen").external_id


def test_a_key_too_long_for_an_index_is_hashed(tmp_path: Path) -> None:
    assert len(posting(tmp_path, external_id="漢" * 1000).external_id) == len("sha256:") + 64


def test_slugs_are_unique_and_do_not_move_with_the_title(tmp_path: Path) -> None:
    first = posting(tmp_path, source="a", external_id="b-c")
    assert first.public_slug == posting(tmp_path, source="a", external_id="b-c", title="x").public_slug
    assert first.public_slug.startswith("a-b-c-")
    assert first.public_slug != posting(tmp_path, source="a-b", external_id="c").public_slug


@pytest.mark.parametrize(
    ("company", "slug"),
    [
        ("Müller & Söhne GmbH", "muller-sohne-gmbh"),
        ("  ", ""),
        ("字节跳动", "字节跳动"),
        ("ООО «Йод»", "ооо-иод"),
    ],
)
def test_a_company_known_in_any_script_has_a_slug(tmp_path: Path, company: str, slug: str) -> None:
    assert posting(tmp_path, company=company).company_slug == slug


@pytest.mark.parametrize("field", ["title", "company", "description", "url"])
def test_the_content_hash_moves_with_the_content_only(tmp_path: Path, field: str) -> None:
    other: dict[str, Any] = {field: "other"}
    first = posting(tmp_path, url="u", id=1)
    assert first.content_hash != replace(first, **other).content_hash
    closed = replace(first, closed_at=datetime.now(UTC), is_tech=False, source="s", external_id="2")
    assert closed.content_hash == first.content_hash


NOON = datetime(2026, 7, 8, 12, tzinfo=UTC)


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "id": pd.array([1, None], dtype="Int64"),
            "title": ["a", "b"],
            "description": ["c", "d"],
            "posted_at": [NOON, pd.NaT],
            "closed_at": [None, (NOON + timedelta(days=1)).date()],
            "is_tech": [False, None],
        }
    )
    frame.to_parquet(tmp_path / "p.parquet")
    first, second = read_postings(tmp_path / "p.parquet")
    assert isinstance(first, Posting)
    assert isinstance(second, Posting)
    assert (first.external_id, first.posted_at, first.is_tech, first.closed_at) == ("1", NOON, False, None)
    assert (second.posted_at, second.is_tech) == (None, True)
    assert second.closed_at == datetime(2026, 7, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.xlsx", b"", "ends? with one of .jsonl"),
        ("p.parquet.gz", b"", "must end with"),
        ("missing.jsonl", None, "cannot read .*missing.jsonl: No such file"),
        ("p.csv", b"", "no column title and no description; its columns are: none"),
        ("p.csv", b"title;description\n", "its columns are: title;description"),
        ("p.parquet", b"PAR1 or not", "not a readable Parquet file"),
        ("p.jsonl.gz", b"plain", "is damaged: Not a gzipped file"),
        ("p.jsonl.gz", gzip.compress(b'{"title": "a", "description": "b"}\n' * 9)[:-9], "is damaged"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ImportFileError, match=message):
        list(read_postings(tmp_path / name))


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    for name in ("folder.jsonl", "folder.parquet"):
        (tmp_path / name).mkdir()
        with pytest.raises(ImportFileError, match=rf"cannot read .*{name}"):
            list(read_postings(tmp_path / name))


def test_parquet_without_its_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "p.parquet").write_bytes(b"PAR1")
    with pytest.raises(ImportFileError, match=r"pip install -c constraints\.txt -e '\.\[parquet\]'"):
        list(read_postings(tmp_path / "p.parquet"))


def test_the_bundled_postings_are_all_good() -> None:
    rows = list(read_postings(POSTINGS))
    postings = [row for row in rows if isinstance(row, Posting)]
    assert len(postings) == len(rows) >= 55
    assert len({row.external_id for row in postings}) == len(rows)
    assert not any(row.posted_at_unreadable for row in postings)
    assert sum(not row.is_tech for row in postings) == 2
    assert sum(row.closed_at is not None for row in postings) == 2
    assert any(row.posted_at is None for row in postings)
    assert all(row.url.startswith("https://jobs.example/") for row in postings)
