"""Drills of ownership: who holds a posting when workers are killed, stopped, frozen, many, or cut off."""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from freehire_embed.drain import WAVES_AT_ONCE
from freehire_embed.drill.checks import Check, at_most, equal, wait_until
from freehire_embed.drill.scratch import LEASE_SECONDS
from freehire_embed.drill.slow_server import SlowServer
from freehire_embed.drill.worker import Ended, Worker, work

if TYPE_CHECKING:
    from freehire_embed.drill.scratch import Look, Scratch

_WAVE = 10
_HELD = WAVES_AT_ONCE * _WAVE
"""Postings that a worker holds while its server does not answer."""
_POSTINGS = 2 * _WAVE + _HELD + _WAVE
"""Two waves to be finished, as many as a worker can hold, and one more."""
_RACERS = 4
_MOST_RUNS = 5
_STOP_SECONDS = 5
_RECOVERY_SECONDS = LEASE_SECONDS + 15
"""The lease, and the start of two workers on a busy machine."""


def kill(scratch: Scratch) -> list[Check]:
    """A worker is killed (SIGKILL) after two waves, with all the waves in hand that it can hold."""
    scratch.begin(_POSTINGS)
    with SlowServer(answers=2) as server:
        environment = scratch.environment(server.url)
        with Worker(environment) as worker:
            worker.reaches(lambda: server.holds(1), "the worker waits for vectors")
            worker.reaches(lambda: _full(scratch.look()), "the worker holds all it can")
            worker.signal(signal.SIGKILL)
            killed_at = time.monotonic()
            worker.end()
        kept = scratch.look()
        server.go_on()
        later: list[Ended] = []
        while scratch.look().indexed < _POSTINGS and len(later) < _MOST_RUNS:
            wait_until(lambda: scratch.claimable() > 0, "the killed worker's lease has ended")
            later.append(work(environment))
        seconds = time.monotonic() - killed_at
        last = scratch.look()
    return [
        equal("finished waves kept", 2 * _WAVE, kept.indexed),
        equal("indexed by the runs after the kill", _HELD + _WAVE, sum(e.outcome("indexed") for e in later)),
        equal("indexed in the end", _POSTINGS, last.indexed),
        equal("attempts charged", 0, last.charged),
        equal("postings sent to the server, one wave twice", _POSTINGS + _WAVE, server.postings),
        at_most("from kill to recovery", _RECOVERY_SECONDS, seconds, " s"),
        later[-1].exits("the last run", 0),
        equal("foreign vectors stored", [], scratch.strangers()),
    ]


def _full(look: Look) -> bool:
    return look.indexed == 2 * _WAVE and look.leased == _HELD


def stop(scratch: Scratch) -> list[Check]:
    """A worker is told to stop (SIGTERM) after two waves, with all the waves in hand that it can hold."""
    scratch.begin(_POSTINGS)
    with SlowServer(answers=2) as server:
        environment = scratch.environment(server.url)
        with Worker(environment) as worker:
            worker.reaches(lambda: server.holds(1), "the worker waits for vectors")
            worker.reaches(lambda: _full(scratch.look()), "the worker holds all it can")
            worker.signal(signal.SIGTERM)
            stopped_at = time.monotonic()
            ended = worker.end()
            seconds = time.monotonic() - stopped_at
        free = scratch.look()
        server.go_on()
        following = work(environment)
    return [
        at_most("from SIGTERM to the end of the process", _STOP_SECONDS, seconds, " s"),
        ended.exits("the stopped worker", 1),
        equal("finished waves kept", 2 * _WAVE, free.indexed),
        equal("claims still leased", 0, free.leased),
        equal("attempts charged", 0, free.charged),
        equal("indexed by the next run, at once", _HELD + _WAVE, following.outcome("indexed")),
        following.exits("the next run", 0),
    ]


def stale_owner(scratch: Scratch) -> list[Check]:
    """A worker is frozen (SIGSTOP) until another has taken over its wave, then goes on (SIGCONT)."""
    scratch.begin(_WAVE)
    with SlowServer(answers=0) as server:
        environment = scratch.environment(server.url)
        with Worker(environment) as worker:
            worker.reaches(lambda: server.holds(1), "the worker waits for vectors")
            worker.signal(signal.SIGSTOP)
            wait_until(lambda: scratch.claimable() == _WAVE, "the frozen worker's lease has ended")
            server.go_on()
            other = work(environment)
            before = scratch.fingerprint()
            worker.signal(signal.SIGCONT)
            stale = worker.end()
        after = scratch.fingerprint()
    return [
        equal("indexed by the worker that took over", _WAVE, other.outcome("indexed")),
        equal("lost by the stale owner", _WAVE, stale.outcome("lost")),
        equal("indexed by the stale owner", 0, stale.outcome("indexed")),
        stale.exits("the stale owner", 0),
        equal("any row written by the stale owner", False, before != after),
        equal("foreign vectors stored", [], scratch.strangers()),
    ]


def race(scratch: Scratch) -> list[Check]:
    """Four workers at once on one queue; none goes on before all of them hold a wave."""
    postings = 2 * _RACERS * _HELD
    scratch.begin(postings)
    with SlowServer(answers=0) as server, ExitStack() as stack:
        environment = scratch.environment(server.url)
        workers = [stack.enter_context(Worker(environment)) for _ in range(_RACERS)]
        wait_until(lambda: server.holds(_RACERS), f"{_RACERS} workers wait for vectors")
        server.go_on()
        ended = [worker.end() for worker in workers]
        last = scratch.look()
    indexed = [each.outcome("indexed") for each in ended]
    return [
        equal(f"indexed by the {_RACERS} workers together", postings, sum(indexed)),
        equal("workers that did a part", _RACERS, sum(count > 0 for count in indexed)),
        equal("postings sent to the server, each once", postings, server.postings),
        equal("lost", 0, sum(each.outcome("lost") for each in ended)),
        equal("entries left in the queue", 0, last.queued + last.dead),
        *(each.exits(f"worker {number}", 0) for number, each in enumerate(ended, 1)),
        equal("foreign vectors stored", [], scratch.strangers()),
    ]


def restart(scratch: Scratch) -> list[Check]:
    """Postgres is restarted, or out of reach for a second, while a worker waits for its vectors."""
    scratch.begin(_POSTINGS)
    with SlowServer(answers=1) as server, scratch.interruption() as (url, interrupt):
        environment = scratch.environment(server.url, DATABASE_URL=url)
        with Worker(environment) as worker:
            worker.reaches(lambda: server.holds(1), "the worker waits for vectors")
            interrupt()
            server.go_on()
            hit = worker.end()
        following = work(environment)
        last = scratch.look()
    return [
        equal(
            "indexed by this run and the next",
            _POSTINGS,
            hit.outcome("indexed") + following.outcome("indexed"),
        ),
        equal("indexed in the end", _POSTINGS, last.indexed),
        equal("attempts charged", 0, last.charged),
        following.exits("the next run", 0),
        equal("foreign vectors stored", [], scratch.strangers()),
    ]
