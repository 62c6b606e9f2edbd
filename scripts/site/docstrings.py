"""Parts of docstrings: the summary, and the entries of a section."""

import inspect
import re
from collections.abc import Mapping
from typing import Final

__all__ = ["entries", "plain", "summary"]

_ENTRY: Final = re.compile(r"^ {4}(\w+): (.*)$")


def summary(documented: object) -> str:
    """Return the first paragraph of a docstring, on one line.

    Example:
        >>> summary(summary)
        'Return the first paragraph of a docstring, on one line.'
    """
    return plain((inspect.getdoc(documented) or "").partition("\n\n")[0])


def entries(documented: object, section: str = "Args") -> Mapping[str, str]:
    """Return the entries of a section of a docstring: the text of each name, on one line.

    Args:
        documented: A class or a function.
        section: The title of the section, without its colon.

    Example:
        >>> entries(entries)["section"]
        'The title of the section, without its colon.'
    """
    _, _, rest = (inspect.getdoc(documented) or "").partition(f"{section}:\n")
    found: dict[str, str] = {}
    name = ""
    for line in rest.splitlines():
        if line and not line.startswith("    "):
            break
        if entry := _ENTRY.match(line):
            name, found[entry[1]] = entry[1], entry[2]
        elif name:
            found[name] += f" {line.strip()}"
    return {name: plain(text) for name, text in found.items()}


def plain(text: str) -> str:
    r"""Return a text on one line, which a cell of a table can hold.

    Example:
        >>> print(plain("yes |\n  no"))
        yes \| no
    """
    return " ".join(text.split()).replace("|", "\\|")
