"""How we speak HTTP, with embedding servers and language models alike.

From the wire upwards: connections that carry nothing but the answers to our own requests (connections.py), one
exchange (http.py), an answer that is not what was asked for (refusal.py, redaction.py), how patient and how pushy
to be (pace.py, waiting.py, retry.py), where to ask (address.py), and the faults that end something (faults.py).
What the bodies mean is the business of those who speak the dialect.
"""
