"""Several servers behind one URL, one of which is of another model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freehire_embed.drill import tei_faults
from freehire_embed.drill.checks import equal
from freehire_embed.drill.faulty_tei import FaultyTei
from freehire_embed.drill.scratch import SERVED, WIDTH
from freehire_embed.drill.worker import work

if TYPE_CHECKING:
    from freehire_embed.drill.checks import Check
    from freehire_embed.drill.scratch import Scratch


def balancer(scratch: Scratch) -> list[Check]:
    """One answer in ten is of another model; then all are; then rows come in another order; then all is well."""
    with FaultyTei(width=WIDTH, model_id=SERVED) as tei:
        environment = scratch.environment(tei.url)
        scratch.begin(300)
        tei.fail(tei_faults.foreign(), every=10)
        mixed = work(environment)
        indexed, after_mixed = scratch.look().indexed, scratch.strangers()
        answered = int(mixed.counters.get("foreign", 0)) > 0 and tei.requests > 0
        tei.recover()
        scratch.begin(100)
        tei.fail(tei_faults.foreign(), after=4)
        foreign = work(environment)
        after_foreign = scratch.strangers()
        tei.recover()
        tei.fail(tei_faults.turned(1), after=1)
        turned = work(environment)
        during, after_turned = scratch.look(), scratch.strangers()
        tei.recover()
        clean = work(environment)
        last = scratch.look()
    return [
        equal("indexed beside a foreign replica", 300, indexed),
        equal("foreign vectors stored", [], after_mixed),
        equal("foreign answers told", True, answered),
        mixed.exits("the run with a foreign replica", 1),
        equal("foreign vectors of an all-foreign fleet", [], after_foreign),
        foreign.exits("the run with foreign servers only", 2),
        equal("vectors stored in the wrong order", [], after_turned),
        turned.exits("the run with rows mixed up", 2),
        equal("attempts charged", 0, during.charged),
        equal("claims still leased", 0, during.leased),
        equal("indexed when all is well", 100, last.indexed),
        clean.exits("that run", 0),
        equal("foreign vectors in the end", [], scratch.strangers()),
    ]
