"""`index status`, `index drop` and `index build`: the vector index around a full re-embed."""

from __future__ import annotations

from dataclasses import asdict

import click

from freehire_embed.cli.exits import CLEAN
from freehire_embed.cli.options import json_option, opened, option, read_settings
from freehire_embed.cli.output import note, print_json, progress, say
from freehire_embed.store import vector_index
from freehire_embed.store.vector_index import Progress, VectorIndex


@click.group(short_help="Look at, drop or build the vector index.")
def index() -> None:
    """\b
    Example: freehire-embed index status

    The HNSW index that search uses. It makes every commit many times slower, so a full re-embed is quicker without
    it: drop it before, build it after. `freehire-embed plan` says when that pays.
    """


@index.command(short_help="Show the index, its size and what a build needs.")
@json_option
def status(json: bool) -> int:
    """\b
    Example: freehire-embed index status --json

    Whether the index is there and valid, how far a build is, and the memory that a build wants.
    """
    with opened(read_settings()) as (_, database):
        state = vector_index.look(database)
    if json:
        print_json({**asdict(state), "fits": state.fits})
        return CLEAN
    names = ", ".join(state.valid) or "none: search compares every vector, exact but slow"
    say(f"index      {names}")
    if len(state.valid) > 1:
        say("           more than one does the same work twice: drop all but one")
    if state.other:
        say(f"unused     {', '.join(state.other)}, of another kind: no query of ours uses it")
    if state.invalid and not state.building:
        left = ", ".join(state.invalid)
        say(f"left over  {left}, of a build that failed; `freehire-embed index build` repairs it")
    for each in state.building:
        say(f"building   {_line(each)}")
    say(f"vectors    {state.rows:,}, the index takes {_size(state.bytes)}")
    say(f"a build    {_memory_advice(state)}")
    return CLEAN


@index.command(short_help="Drop the index; search goes on without it.")
def drop() -> int:
    """\b
    Example: freehire-embed index drop

    Drops the vector index without blocking anyone. Until it is built again, search and similar postings compare
    every vector: the same answers or better ones, but a second or more for each million vectors.
    """
    with opened(read_settings()) as (_, database):
        dropped = vector_index.drop(database)
    say(
        f"dropped {', '.join(dropped)}; after the re-embed: freehire-embed index build"
        if dropped
        else "nothing to do: there is no vector index"
    )
    return CLEAN


@index.command(short_help="Build the index while everything goes on.")
@option("--memory", help="maintenance_work_mem of this build, such as 8GB; without it, the server's own.")
def build(memory: str | None) -> int:
    """\b
    Example: freehire-embed index build --memory 8GB

    Builds the vector index concurrently. What a failed build left behind is dropped first. Ctrl-C ends it.
    """
    with opened(read_settings()) as (_, database):
        state = vector_index.look(database)
        if not state.valid and memory is None and not state.fits:
            note(_memory_advice(state))
        with progress("vectors", log_every_seconds=10) as advance:
            built = vector_index.build(
                database, memory, lambda each: advance(each.done, each.total or None, _line(each))
            )
    say("the vector index is built" if built else "nothing to do: the vector index is there and valid")
    return CLEAN


def _line(state: Progress) -> str:
    done = f", {state.done:,} of {state.total:,}" if state.total else ""
    waits = f"; waits for the transaction of process {state.waits_for} to end" if state.waits_for else ""
    return f"{state.phase}{done}{waits}"


def _memory_advice(state: VectorIndex) -> str:
    wanted = (
        f"wants {_size(state.graph_bytes)} of memory; maintenance_work_mem is {_size(state.memory_bytes)}"
    )
    if state.fits:
        return wanted
    megabytes = -(-state.graph_bytes * 11 // 10 // 2**20)
    return f"{wanted}, so it takes about three times as long; --memory {megabytes}MB where the server can spare it"


def _size(count: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GB"
