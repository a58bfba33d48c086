"""The drills by name, and the way through them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from freehire_embed.drill import balancer_drill, blame_drills, ownership_drills
from freehire_embed.drill.checks import Check, DrillStuck
from freehire_embed.drill.scratch import scratch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pydantic import SecretStr

    from freehire_embed.drill.scratch import Scratch

DRILLS: dict[str, Callable[[Scratch], list[Check]]] = {
    "poison": blame_drills.poison,
    "outage": blame_drills.outage,
    "swap": blame_drills.swap,
    "balancer": balancer_drill.balancer,
    "kill": ownership_drills.kill,
    "stop": ownership_drills.stop,
    "stale-owner": ownership_drills.stale_owner,
    "race": ownership_drills.race,
    "restart": ownership_drills.restart,
}


@dataclass(frozen=True, slots=True)
class DrillReport:
    name: str
    checks: Sequence[Check]
    seconds: float

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)


def run_drills(names: Sequence[str], database_url: SecretStr | None) -> Iterator[DrillReport]:
    """Runs the named drills, one after the other, on one scratch database.

    A drill that waits in vain for something fails there. Raises what `scratch` raises.
    """
    with scratch(database_url) as ground:
        for name in names:
            started = time.monotonic()
            try:
                checks = DRILLS[name](ground)
            except DrillStuck as error:
                checks = [Check("the drill comes to its end", "yes", str(error), ok=False)]
            yield DrillReport(name, checks, time.monotonic() - started)
