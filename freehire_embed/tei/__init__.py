"""The only code that speaks to the embedding server.

`TeiEmbedder` (embedder.py) is all that others need. Below it, from the wire upwards: one attempt of one
request (client.py), what its answer means (answers.py, vectors.py), who is to blame for a failure (blame.py),
how patient to be (pace.py, retry.py), and whether it is the right server at all (handshake.py).
"""

from freehire_embed.tei.embedder import TeiEmbedder
from freehire_embed.tei.faults import ConfigFault, TeiFault, UpstreamFault
from freehire_embed.tei.pace import Patience
from freehire_embed.tei.stats import TeiStats

__all__ = ["ConfigFault", "Patience", "TeiEmbedder", "TeiFault", "TeiStats", "UpstreamFault"]
