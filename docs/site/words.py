"""Hook of MkDocs: identifiers break between their words, where a line is too narrow for them."""

from __future__ import annotations

import re
from typing import Any, Final

LONG: Final = 14
"""Letters of an identifier that fit on any line."""
_WITHIN: Final = re.compile(
    r"(?P<pre><pre\b.*?</pre>)|(?P<start><(?P<tag>code|h[1-4]|title)\b[^>]*>|<span class=\"md-ellipsis\">)"
    r"(?P<text>.*?)(?P<end></(?(tag)(?P=tag)|span)>)",
    re.DOTALL,
)
_WORD: Final = re.compile(r"(?P<tag><[^>]*>)|(?P<word>(?:[^\s<&]|&\w+;|&#\d+;)+)")
_BREAK: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[\w\])};][._/:=|,@])(?=[\w\[({*&])|(?<=\w)(?=[\[(])")


def on_post_page(output: str, **_: Any) -> str:
    """Mark the places, after the index of the search was made."""
    return _WITHIN.sub(_marked, output)


def _marked(found: re.Match[str]) -> str:
    if found["pre"] or found["tag"] == "title":
        return found[0]
    return found["start"] + _WORD.sub(_word, found["text"]) + found["end"]


def _word(found: re.Match[str]) -> str:
    word = found["word"]
    return found[0] if not word or len(word) <= LONG else _BREAK.sub("<wbr>", word)
