"""`serve-tei`."""

from __future__ import annotations

from contextlib import suppress

import click

from freehire_embed.cli.exits import CLEAN
from freehire_embed.cli.options import option
from freehire_embed.local import model_server


@click.command("serve-tei", short_help="Serve the local model behind TEI's API.")
@option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@option(
    "--port", default=8090, show_default=True, type=click.IntRange(0, 65535), help="Port; 0 = a free one."
)
def serve_tei(host: str, port: int) -> int:
    """\b
    Example: freehire-embed serve-tei --port 8090

    Serves the local multilingual-e5-small model behind the HTTP API of Text Embeddings Inference, until stopped.
    Use it with EMBED_URL=http://127.0.0.1:8090/embed and an identity of that model.
    """
    with suppress(KeyboardInterrupt):
        model_server.serve(host, port)
    return CLEAN
