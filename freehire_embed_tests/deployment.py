"""A deployment to test on: the environment of a small identity served by a `FaultyTei`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

WIDTH = 8  # narrow vectors keep the tests fast; nothing in the pipeline depends on the width
OLD = "tiny-v1"
NEW = "tiny-v2"
SERVED = "example/tiny"


def environment(database_url: str, embed_url: str, folder: Path) -> dict[str, str]:
    """Variables of a deployment with two identities, OLD the one in force; waves of four postings."""
    profiles = folder / "profiles.toml"
    profiles.write_text(
        "".join(
            f'[profiles."{identity}"]\nserved = ["{SERVED}"]\nwidth = {WIDTH}\npassage_prefix = "{identity}: "\n'
            for identity in (OLD, NEW)
        )
    )
    return {
        "DATABASE_URL": database_url,
        "EMBED_URL": embed_url,
        "EMBED_MODEL": OLD,
        "EMBED_PROFILES": str(profiles),
        "EMBED_BATCH_SIZE": "4",
        "EMBED_WARMUP_SECONDS": "0",
        "FREEHIRE_STATE": str(folder / "state"),
    }
