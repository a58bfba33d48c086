"""cases/text_cases.json: postings with one fault each, and the properties that must hold for them."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from freehire_embed.chunks import passages
from freehire_embed.profiles import BUILT_IN, Profile
from freehire_embed.text import html_to_text

Case = dict[str, Any]

CASES: list[Case] = json.loads((Path(__file__).parent / "cases" / "text_cases.json").read_text("ascii"))
PROFILES = {
    rule: next(profile for profile in BUILT_IN.values() if profile.chunking == rule) for rule in ("v1", "v2")
}


def _runs() -> list[Any]:
    return [
        pytest.param(case, rule, id=f"{case['name']}-{rule}")
        for case in CASES
        for rule in PROFILES
        if rule == "v2" or case.get("rule") != "v2"
    ]


def _description(case: Case) -> str | None:
    if "html_parts" in case:
        return "".join(part * times for part, times in case["html_parts"])
    description: str | None = case["html"]
    return description


def _prefix(case: Case, profile: Profile) -> str:
    (passage,) = passages(case["title"], case["company"], "<p>Body</p>", profile)
    return passage.removesuffix("Body")


def _one_blank(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def _no_blank(text: str) -> str:
    return re.sub(r"\s+", "", text)


@pytest.mark.parametrize(("case", "rule"), _runs())
def test_a_posting_with_a_fault_keeps_its_properties(case: Case, rule: str) -> None:
    profile = PROFILES[rule]
    description = _description(case)
    started = time.monotonic()
    text = html_to_text(description)
    inputs = passages(case["title"], case["company"], description, profile)
    seconds = time.monotonic() - started
    prefix = _prefix(case, profile)
    assert all(passage.startswith(prefix) for passage in inputs)
    bodies = [passage.removeprefix(prefix) for passage in inputs]
    for name, wanted in case["expected"].items():
        if name == "n_chunks" and isinstance(wanted, int) and wanted > 0 and rule == "v2":
            continue  # exact numbers of chunks are those of v1
        assert _holds(name, wanted, text, inputs, bodies, prefix, seconds), (name, wanted, len(inputs))


def _holds(
    name: str, wanted: Any, text: str, inputs: list[str], bodies: list[str], prefix: str, seconds: float
) -> bool:
    match name:
        case "lines":
            return [_one_blank(line).strip() for line in text.split("\n") if line.strip()] == wanted
        case "contains":
            return all(part in _one_blank(text) for part in wanted)
        case "not_contains":
            return not any(part in _one_blank(text) for part in wanted)
        case "not_chars":
            return not any(character in text for character in wanted)
        case "encodable":
            return not any(b"\0" in passage.encode() for passage in inputs)
        case "n_chunks":
            least, most = (wanted, wanted) if isinstance(wanted, int) else wanted
            return bool(least <= len(bodies) <= most)
        case "max_chunk_chars":
            return all(len(body) <= wanted for body in bodies)
        case "lossless":
            return not wanted or _no_blank("".join(bodies)) == _no_blank(text)
        case "no_split_inside":
            return all(any(part in body for body in bodies) for part in wanted)
        case "chunks_not_start_with":
            return not any(body.startswith(tuple(wanted)) for body in bodies)
        case "chunks_match":
            return all(re.search(wanted, body) for body in bodies)
        case "prefix":
            return prefix == wanted and all(passage.startswith(wanted) for passage in inputs)
        case "prefix_not_contains":
            return not any(part in prefix for part in wanted)
        case "max_seconds":
            return bool(seconds <= wanted)
    raise AssertionError(f"no such property: {name}")
