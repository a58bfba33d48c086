"""The only code that speaks to the embedding server.

`TeiEmbedder` (embedder.py) is all that others need. Below it: one attempt of one request (client.py), what its
answer means (answers.py, vectors.py), who is to blame for a failure (blame.py), what a request may hold
(limits.py), and whether it is the right server at all (handshake.py). How HTTP is spoken at all is `wire/`.
"""

from freehire_embed.tei.embedder import TeiEmbedder
from freehire_embed.tei.stats import TeiStats
from freehire_embed.wire.faults import ConfigFault, ServerFault, UpstreamFault
from freehire_embed.wire.pace import Patience

__all__ = ["ConfigFault", "Patience", "ServerFault", "TeiEmbedder", "TeiStats", "UpstreamFault"]
