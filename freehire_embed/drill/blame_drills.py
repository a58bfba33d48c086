"""Drills of blame: who is charged when a posting, the server or the configuration is at fault."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from freehire_embed.drill import tei_faults
from freehire_embed.drill.checks import Check, at_most, equal
from freehire_embed.drill.faulty_tei import FaultyTei
from freehire_embed.drill.scratch import MARKER, SERVED, WIDTH
from freehire_embed.drill.slow_server import SlowServer
from freehire_embed.drill.worker import Worker, work

if TYPE_CHECKING:
    from freehire_embed.drill.scratch import Scratch

_MOST_EXTRA_REQUESTS = 16
"""One bad row in a slice of 32 is found in five halvings, two requests each, and a few witnesses."""
_MOST_REQUESTS_DOWN = 10
"""A slice is tried twice, then five probes ask for the server."""


def poison(scratch: Scratch) -> list[Check]:
    """One of 400 postings cannot be embedded, and the server does not say which one it is."""
    with FaultyTei(width=WIDTH, model_id=SERVED) as tei:
        environment = scratch.environment(tei.url, EMBED_BATCH_SIZE="500", EMBED_MAX_ATTEMPTS="3")
        scratch.begin(400)
        healthy = work(environment)
        scratch.begin(400, poisoned=123)
        tei.fail(tei_faults.status(424), marker=MARKER)
        first = work(environment)
        marker = {"marker": MARKER}
        entry = scratch.database.rows("drill_poison_entry", marker)[0]
        before = scratch.fingerprint(but=entry.job_id)
        later = []
        for _ in range(2):
            scratch.end_leases()
            later.append(work(environment))
        after = scratch.fingerprint(but=entry.job_id)
        entry = scratch.database.rows("drill_poison_entry", marker)[0]
    return [
        equal("indexed in the first run", 399, first.outcome("indexed")),
        equal("failed in the first run", 1, first.outcome("failed")),
        first.exits("the first run", 1),
        at_most("requests beside a healthy run's", _MOST_EXTRA_REQUESTS, first.requests - healthy.requests),
        equal("dead-lettered in the third run", 1, later[1].outcome("dead_lettered")),
        equal("attempts charged to it", 3, entry.attempts),
        equal("neighbours untouched by the later runs", True, before == after),
        equal("foreign vectors stored", [], scratch.strangers()),
    ]


def outage(scratch: Scratch) -> list[Check]:
    """The server goes down in mid-run and stays down for two more runs."""
    scratch.begin(100)
    down = tei_faults.status(503)
    with SlowServer(answers=2, then=down) as server:
        environment = scratch.environment(server.url, EMBED_BATCH_SIZE="20")
        with Worker(environment) as worker:
            worker.reaches(lambda: server.holds(1), "the worker waits for vectors")
            worker.reaches(lambda: scratch.look().indexed == 40, "the first waves are committed")
            sent = [server.tei.requests - 1]
            server.tei.fail(down, info_too=True)
            server.go_on()
            hit = worker.end()
        sent.append(server.tei.requests)
        during = scratch.look()
        refused = []
        for _ in range(2):
            refused.append(work(environment))
            sent.append(server.tei.requests)
        charged = scratch.look().charged
        server.tei.recover()
        last = work(environment)
    return [
        equal("indexed before the outage", 40, during.indexed),
        hit.exits("the run that was hit", 1),
        *(each.exits("a run in the outage", 1) for each in refused),
        at_most("embedding requests a run", _MOST_REQUESTS_DOWN, max(b - a for a, b in pairwise(sent))),
        equal("attempts charged", 0, charged),
        equal("claims still leased", 0, during.leased),
        equal("indexed by the next run", 60, last.outcome("indexed")),
        last.exits("the next run", 0),
        equal("foreign vectors stored", [], scratch.strangers()),
    ]


def swap(scratch: Scratch) -> list[Check]:
    """Another model of the same width takes over behind the URL in mid-run."""
    scratch.begin(40)
    with SlowServer(answers=1) as server:
        environment = scratch.environment(server.url)
        with Worker(environment) as worker:
            worker.reaches(lambda: server.holds(1), "the worker waits for vectors")
            worker.reaches(lambda: scratch.look().indexed == 10, "the first wave is committed")
            server.tei.model_id = "example/other"
            server.go_on()
            swapped = worker.end()
        during = scratch.look()
        foreign = scratch.strangers()
        refused = work(environment)
        server.tei.model_id = SERVED
        last = work(environment)
    return [
        equal("indexed before the swap", 10, during.indexed),
        equal("foreign vectors stored", [], foreign),
        swapped.exits("the run", 2),
        refused.exits("the next run", 2),
        equal("attempts charged", 0, during.charged),
        equal("claims still leased", 0, during.leased),
        equal("indexed by the run with the right model", 30, last.outcome("indexed")),
        last.exits("that run", 0),
        equal("foreign vectors in the end", [], scratch.strangers()),
    ]
