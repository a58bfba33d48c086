"""`python -m freehire_embed`: the same as `freehire-embed`."""

from freehire_embed.cli import main

main()
