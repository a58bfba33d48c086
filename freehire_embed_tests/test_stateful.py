"""Any order of edits, claims, crashes and late owners keeps the invariants of the queue, on a real Postgres.

The stages are the real ones; only the server is left out: a passage's vector is made from its text, so that every
stored vector can be held against the text it must belong to.
"""

from __future__ import annotations

import os
import zlib

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from pydantic import SecretStr

from freehire_embed import stages
from freehire_embed.chunks import passages
from freehire_embed.domain import Halt, HaltKind, Outcome, RowFault
from freehire_embed.profiles import Profile
from freehire_embed.store.database import Database
from freehire_embed.store.dead_letters import Selection, requeue
from freehire_embed.store.outbox import release_run
from freehire_embed.waves import EmbeddedDocument, EmbeddedWave
from freehire_embed_tests.catalogue import MODEL, add_posting, count, expire_leases, outbox, vector
from freehire_embed_tests.conftest import WIDTH

PROFILE = Profile(MODEL, ("none",), WIDTH)
MAX_ATTEMPTS = 2
SHRINK = bool(os.environ.get("SHRINK"))  # a smaller failing example, for minutes of work


def vector_of(text):
    return vector(zlib.crc32(text.encode()), WIDTH)


def description_of(revision):
    """Paragraphs of more than half a chunk each: an edit of one leaves the others' passages as they are."""
    return "".join(f"<p>{f'paragraph {version} ' * 90}</p>" for version in revision)


fates = st.sampled_from(["good", "poison", "upstream", "timeout", "undecided", "foreign edit"])
revisions = st.lists(st.integers(0, 3), min_size=0, max_size=3).map(tuple)


# How often each is drawn: most need a claim, which needs an enqueue before.
WEIGHTS = {
    "claim": 4,
    "work": 5,
    "edit": 3,
    "be_robbed": 2,
    "touch": 2,
    "enqueue": 2,
    "post": 1,
    "delete": 1,
    "expire": 1,
    "crash": 1,
    "crash_and_be_noticed": 1,
    "renew": 1,
    "requeue_dead_letters": 1,
}
ACTIONS = [action for action, weight in WEIGHTS.items() for _ in range(weight)]


class Pipeline(RuleBasedStateMachine):
    sql: psycopg.Connection
    database: Database

    def __init__(self):
        super().__init__()
        self.sql.execute("truncate jobs, semantic_outbox, job_semantic_chunks, search_outbox cascade")
        self.texts = {}  # (job id, content hash) -> description
        self.waves = []  # waves in somebody's hands: (queue, wave or a later form of it)
        self.runs = 0
        self.edits = 0

    def _revise(self, job_id, revision):
        self.edits += 1
        content_hash = f"h{self.edits}"
        self.texts[job_id, content_hash] = description_of(revision)
        self.sql.execute(
            "update jobs set description = %s, content_hash = %s where id = %s",
            [description_of(revision), content_hash, job_id],
        )

    def _postings(self):
        return [row[0] for row in self.sql.execute("select id from jobs order by id").fetchall()]

    def _queue(self):
        self.runs += 1
        return outbox(self.database, f"run-{self.runs}", max_attempts=MAX_ATTEMPTS)

    @initialize(catalogue=st.lists(revisions, min_size=3, max_size=5))
    def begin(self, catalogue):
        for revision in catalogue:
            self.add(revision)
        self.enqueue(None)

    @rule(
        action=st.sampled_from(ACTIONS),
        data=st.data(),
    )
    def step(self, action, data):
        """One rule for all actions, so that none is rare: most need a claim, which needs an enqueue before."""
        if action in ("work", "be_robbed", "crash", "crash_and_be_noticed", "renew") and not self.waves:
            action = "claim"
        getattr(self, action)(data)

    def post(self, data):
        self.add(data.draw(revisions))

    def add(self, revision):
        self._revise(add_posting(self.sql), revision)

    def edit(self, data):
        if ids := self._postings():
            self._revise(data.draw(st.sampled_from(ids)), data.draw(revisions))

    def touch(self, data):
        change = data.draw(
            st.sampled_from(
                [
                    "closed_at = now()",
                    "closed_at = null",
                    "is_tech = null",
                    "is_tech = true",
                    "updated_at = now()",
                ]
            )
        )
        if ids := self._postings():
            self.sql.execute(f"update jobs set {change} where id = %s", [data.draw(st.sampled_from(ids))])

    def delete(self, data):
        if ids := self._postings():
            self.sql.execute("delete from jobs where id = %s", [data.draw(st.sampled_from(ids))])

    def enqueue(self, data):
        stages.enqueue(self._queue())
        assert stages.enqueue(self._queue()).enqueued == 0

    def claim(self, data):
        queue = self._queue()
        if wave := stages.claim(queue, data.draw(st.integers(1, 4))):
            self.waves.append((queue, wave))

    def _take_a_wave(self, data):
        taken = data.draw(st.sampled_from(self.waves))
        self.waves.remove(taken)
        return taken

    def be_robbed(self, data):
        """A wave's owner sleeps past its lease; another run claims meanwhile, then the sleeper goes on."""
        queue, wave = self._take_a_wave(data)
        expire_leases(self.sql)
        self.claim(data)
        self._work(queue, wave, data.draw(fates), data)

    def expire(self, data):
        """Every lease in the table ends; nobody tells the owners."""
        expire_leases(self.sql)

    def crash(self, data):
        """The process is gone between two stages: its wave is never heard of again."""
        self._take_a_wave(data)

    def crash_and_be_noticed(self, data):
        queue, _ = self._take_a_wave(data)
        release_run(self.database, queue.run_id, crashed=True)

    def renew(self, data):
        _, wave = data.draw(st.sampled_from(self.waves))
        wave.lease.renew()

    def work(self, data):
        queue, wave = self._take_a_wave(data)
        self._work(queue, wave, data.draw(fates), data)

    def _work(self, queue, wave, fate, data=None):
        before = self._entries()
        held_now = self._still_held(wave)
        chunked = stages.chunk(queue, wave, PROFILE)
        if fate == "foreign edit" and (ids := self._postings()):
            self._revise(data.draw(st.sampled_from(ids)), data.draw(revisions))
        done, faults, unfinished, halt = [], list(chunked.faults), [], None
        for number, document in enumerate(chunked.documents):
            vectors = tuple(vector_of(p.text) for p in document.passages if p.stored_index is None)
            if fate == "poison" and number == 0:
                faults.append(RowFault(document.claim, "poison", content_hash=document.content_hash))
            elif fate in ("upstream", "timeout", "undecided") and vectors:
                unfinished.append(document.claim)
                halt = {
                    "upstream": Halt(HaltKind.UPSTREAM, "down"),
                    "timeout": Halt(HaltKind.CALL_TIMEOUT, "slow"),
                    "undecided": Halt(HaltKind.UNDECIDED, "odd"),
                }[fate]
            else:
                done.append(EmbeddedDocument(document, vectors))
        report = stages.commit(
            queue,
            EmbeddedWave(chunked.lease, tuple(done), chunked.closed, tuple(faults), tuple(unfinished), halt),
        )
        assert report.claimed == len(wave.claims), "each claimed entry has exactly one outcome"
        assert report.outcomes[Outcome.LOST] == len(wave.claims) - len(held_now)
        after = self._entries()
        for claim in wave.claims:
            if claim.entry_id not in held_now and claim.entry_id in before and claim.entry_id in after:
                assert after[claim.entry_id] == before[claim.entry_id], "a stale owner changes nothing"
        charged = {fault.claim.entry_id for fault in faults} & held_now
        for entry_id, row in after.items():
            if entry_id in before:
                assert row["attempts"] - before[entry_id]["attempts"] == (entry_id in charged)

    def _entries(self):
        cursor = self.sql.execute("select * from semantic_outbox")
        names = [column.name for column in cursor.description]
        return {row[0]: dict(zip(names, row, strict=True)) for row in cursor.fetchall()}

    def _still_held(self, wave):
        with wave.lease.fence() as stamp:
            rows = self.sql.execute(
                "select id from semantic_outbox where id = any(%s) and claimed_at = %s and failed_at is null",
                [[claim.entry_id for claim in wave.claims], stamp],
            ).fetchall()
        return {row[0] for row in rows}

    def requeue_dead_letters(self, data):
        first = requeue(self.database, MODEL, Selection())
        assert requeue(self.database, MODEL, Selection()) == []
        for entry_id in first:
            assert self._entries()[entry_id]["attempts"] == 0

    @invariant()
    def one_entry_a_posting_and_model(self):
        assert (
            count(self.sql, "select count(*) - count(distinct (job_id, target_model)) from semantic_outbox")
            == 0
        )

    @invariant()
    def every_stored_vector_belongs_to_the_stamped_text(self):
        rows = self.sql.execute(
            "select j.id, j.title, j.company, j.semantic_embedded_model, j.semantic_embedded_hash, "
            "array(select c.embedding::real[]::text from job_semantic_chunks c where c.job_id = j.id "
            "order by c.chunk_index), "
            "array(select c.chunk_index::int from job_semantic_chunks c where c.job_id = j.id order by 1) "
            "from jobs j"
        ).fetchall()
        for job_id, title, company, model, content_hash, vectors, indexes in rows:
            if model is None:
                assert vectors == []
                continue
            texts = passages(title, company, self.texts[job_id, content_hash], PROFILE)
            assert indexes == list(range(len(texts)))
            stored = [np.array(v.strip("{}").split(","), dtype=np.float32) for v in vectors]
            assert all(np.array_equal(s, vector_of(t)) for s, t in zip(stored, texts, strict=True))

    @invariant()
    def no_transaction_is_left_open(self):
        assert (
            count(
                self.sql,
                "select count(*) from pg_stat_activity where datname = current_database() "
                "and application_name = 'freehire_embed' and state like 'idle in transaction%%'",
            )
            == 0
        )

    def teardown(self):
        """Whatever happened: after the leases and one good run the catalogue is covered."""
        expire_leases(self.sql)
        queue = self._queue()
        requeue(self.database, MODEL, Selection())
        for _ in range(2):  # what an edit or a reopening undid in the last wave comes with the second
            queue = self._queue()
            stages.enqueue(queue)
            while wave := stages.claim(queue, 3):
                self._work(queue, wave, "good")
            expire_leases(self.sql)
            requeue(self.database, MODEL, Selection())
        self.every_stored_vector_belongs_to_the_stamped_text()
        eligible = "closed_at is null and duplicate_of is null and is_tech is true"
        assert (
            count(
                self.sql,
                f"select count(*) from jobs where ({eligible}) and (semantic_embedded_model is distinct from %s "
                "or semantic_embedded_hash is distinct from content_hash)",
                MODEL,
            )
            == 0
        )
        assert (
            count(
                self.sql,
                f"select count(*) from jobs where not ({eligible}) and semantic_embedded_model is not null",
            )
            == 0
        )
        assert count(self.sql, "select count(*) from semantic_outbox where failed_at is null") == 0


@pytest.mark.parametrize("examples", [60])
def test_any_order_of_events_keeps_the_invariants(database_url, direct_url, examples):
    with (
        Database(SecretStr(database_url)) as database,
        psycopg.connect(direct_url, autocommit=True) as sql,
    ):
        machine = type("PipelineHere", (Pipeline,), {"sql": sql, "database": database})
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=examples,
                stateful_step_count=40,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink][: 4 if SHRINK else 3],
            ),
        )
