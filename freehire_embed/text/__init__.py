"""What a posting says: HTML to plain text, its language, and how many tokens it is.

`plain.py` reads HTML by the rule table of `markup.py`, `reference.py` reads the same table in the plain way and is
the oracle; `tokens.py` counts, `token_budget.py` cuts by it. Pure functions, all of them.
"""

from freehire_embed.text.plain import clean, html_to_text, one_line, prepare

__all__ = ["clean", "html_to_text", "one_line", "prepare"]
