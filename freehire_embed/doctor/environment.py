"""Are the settings what they seem, and is anything switched off that should run?"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from freehire_embed.doctor.check import Check
from freehire_embed.settings import FALSE_WORDS, RULES, TRUE_WORDS, VARIABLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from freehire_embed.settings import Settings

# Dagster's own tolerance for a daemon that does not beat.
_DAEMON_SEEN_SECONDS = 300
_PSYCOPG2 = "postgresql+psycopg2://"


def check_values(environment: Mapping[str, str]) -> Iterator[Check]:
    for rule in RULES.values():
        given = environment.get(rule.variable, "").strip()
        if not given:
            continue
        try:
            number = int(given)
        except ValueError:
            found = f"{rule.variable}={given!r} is not a whole number; {rule.default} is used"
            yield Check("settings", False, found, f"set {rule.variable} to a whole number, or unset it")
            continue
        if number < rule.floor:
            found = f"{rule.variable}={number} is below the floor; {rule.floor} is used: {rule.why}"
        elif number > rule.ceiling:
            found = f"{rule.variable}={number} is above the ceiling; {rule.ceiling} is used"
        else:
            found = f"{rule.variable}={number}"
        yield Check("settings", True, found)
    for variable in ("EMBED_VERIFY_MODEL", "EMBED_ADAPTIVE"):
        word = environment.get(variable, "").strip()
        if word and word.lower() not in (*TRUE_WORDS, *FALSE_WORDS):
            found = f"{variable}={word!r} is neither true nor false; true is used"
            yield Check("settings", False, found, f"set {variable} to true or false, or unset it")


def check_names(environment: Mapping[str, str]) -> Iterator[Check]:
    for variable in sorted(environment):
        if variable.startswith("EMBED_") and variable not in VARIABLES:
            near = difflib.get_close_matches(variable, VARIABLES, 1)
            fix = f"did you mean {near[0]}?" if near else "unset it, or see docs/settings.md"
            yield Check("settings", False, f"{variable} is no setting", fix)


def check_automation(settings: Settings, environment: Mapping[str, str]) -> Iterator[Check]:
    """Only where Dagster is in use: who runs the pipeline from cron has no instance."""
    configured = bool(environment.get("DAGSTER_HOME"))
    if not configured and not (settings.state_dir / "dagster").is_dir():
        return
    # Dagster takes two seconds to import.
    from freehire_embed.orchestration.inspection import InstanceUnreadable, inspect_automation

    try:
        automation = inspect_automation()
    except InstanceUnreadable as error:
        history = environment.get("DAGSTER_POSTGRES_URL", "")
        if history and not history.startswith(_PSYCOPG2):
            found = "DAGSTER_POSTGRES_URL does not name the driver that Dagster needs"
            yield Check("dagster", False, found, f"let it begin with {_PSYCOPG2}")
            return
        fix = "correct DAGSTER_HOME, its dagster.yaml or DAGSTER_POSTGRES_URL, or start the database named there"
        yield Check("dagster", False, f"the instance cannot be opened: {error}", fix)
        return
    for name in automation.stopped:
        yield Check("dagster", False, f"{name} is switched off", "switch it on in the UI under Automation")
    seconds = automation.daemon_seconds
    if seconds is not None and seconds < _DAEMON_SEEN_SECONDS:
        yield Check("dagster", True, "the daemon is alive")
    elif configured:
        seen = "was never seen" if seconds is None else f"was last seen {seconds / 60:.0f} min ago"
        fix = "start dagster-daemon with this DAGSTER_HOME; without it no schedule or sensor runs"
        yield Check("dagster", False, f"the daemon {seen}", fix)
    else:
        yield Check("dagster", True, "no daemon runs now; `make ui` starts one")
