"""What `doctor` asks the Dagster instance: is anything switched off, and does a daemon live?"""

import time
from dataclasses import dataclass

from dagster._core.scheduler.instigation import InstigatorStatus

from freehire_embed.orchestration.automation import embed_schedule, semantic_outbox_depth_sensor
from freehire_embed.orchestration.instance import open_instance


@dataclass(frozen=True, slots=True)
class Automation:
    """State of the instance that `dagster dev` would use here."""

    stopped: tuple[str, ...]
    """Of the schedule and the depth sensor, those that somebody switched off."""
    daemon_seconds: float | None
    """Since the daemon was last seen; None = never."""


class InstanceUnreadable(Exception):
    """The instance, or the database with its history, cannot be opened; one line says why."""


def inspect_automation() -> Automation:
    """Reads the instance; makes an empty one where there was none. Raises InstanceUnreadable."""
    names = (embed_schedule.name, semantic_outbox_depth_sensor.name)
    try:
        with open_instance() as instance:
            stopped = {
                state.instigator_name
                for state in instance.all_instigator_state()
                if state.status == InstigatorStatus.STOPPED
            }
            heartbeats = [beat.timestamp for beat in instance.get_daemon_heartbeats().values()]
    except Exception as error:
        # Dagster, SQLAlchemy and the driver each have errors of their own; the first one knows the cause.
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        raise InstanceUnreadable(" ".join(str(cause).split())) from error
    seconds = time.time() - max(heartbeats) if heartbeats else None
    return Automation(tuple(name for name in names if name in stopped), seconds)
