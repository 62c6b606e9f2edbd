"""A line of a session that begins with `#` is output: some programs print comments, and no page is run by root."""

from __future__ import annotations

import re
from typing import Any, Final

_LINE: Final = re.compile(r'<span class="gp"># </span>(?P<rest>.*)')
_TAG: Final = re.compile(r"<[^>]*>")


def on_page_content(html: str, **_: Any) -> str:
    """Mark such lines as output, which the button at a block does not copy."""
    return _LINE.sub(lambda found: f'<span class="go"># {_TAG.sub("", found["rest"])}</span>', html)
