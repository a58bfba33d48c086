"""Where Dagster keeps its history when it has no database server of its own."""

import logging
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.instance.config import is_dagster_home_set
from dagster._core.instance.ref import InstanceRef
from dagster._core.storage.event_log import SqliteEventLogStorage

from freehire_embed.settings import Settings

PROJECT_DIR = Path(__file__).parents[2]
"""The checkout: dagster.yaml and workspace.yaml lie there."""

_TEMPORARY_HOME = ".tmp_dagster_home_"
# Dagster's own, as its messages are those of the command that was called.
logger = logging.getLogger("dagster")


class StateInstance(dg.DagsterInstance):
    """Puts runs, events, schedules and logs on SQLite under FREEHIRE_STATE, whatever DAGSTER_HOME says.

    dagster.yaml can name an environment variable there but no default for it, and without DAGSTER_HOME
    `dagster dev` would keep its history in a folder that goes when it ends.
    """

    @classmethod
    def config_schema(cls) -> dict[str, Any]:
        return {}

    @staticmethod
    def config_defaults(base_dir: str) -> Any:
        history = Settings.from_environment().state_dir / "dagster"
        # Without DAGSTER_HOME, `dagster dev` has just said that nothing will be kept.
        if Path(base_dir).name.startswith(_TEMPORARY_HOME):
            logger.info("The history is kept all the same, in %s", history)
        return InstanceRef.config_defaults(str(history))

    def delete_run(self, run_id: str) -> None:
        """Dagster empties the database of a run's events and leaves its file, some 150 KB and more, for ever."""
        super().delete_run(run_id)
        events = self.event_log_storage
        if isinstance(events, SqliteEventLogStorage):
            for suffix in ("", "-wal", "-shm"):
                Path(events.path_for_shard(run_id) + suffix).unlink(missing_ok=True)


def open_instance() -> dg.DagsterInstance:
    """The instance that `dagster dev` uses in the checkout: DAGSTER_HOME's, else the one of dagster.yaml."""
    if is_dagster_home_set():
        return dg.DagsterInstance.get()
    return dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(PROJECT_DIR)))
