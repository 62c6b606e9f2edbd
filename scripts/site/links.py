"""Links of pages, rewritten for the site: the layout of the site differs from that of the repository.

The pages of `docs/`, the README, the changelog and the pages for contributors are pages of the site. Any other file
that a page links to is copied below `source/` as plain text, so that the site needs no other host.
"""

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from posixpath import normpath, relpath
from typing import Final

__all__ = ["place_of", "rewritten", "shown_code", "titled"]

_NAMED: Final = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
}
_LINK: Final = re.compile(r"(?P<start>\]\()(?P<target>[^)\s]+)(?P<end>\))")
_CODE: Final = re.compile(r"`[^`\n]+`")
_FILE: Final = re.compile(
    r"^(?P<said>[^`\n]*)`(?P<name>[\w./-]+\.(?:py|yaml|toml))`(?P<rest>[^`\n]*:)\n\n```(?P<language>\w+)$", re.MULTILINE
)
_FENCE: Final = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def place_of(path: str) -> str:
    """Return the place of a file of the repository in the site.

    Args:
        path: The file, relative to the root of the repository, with `/`.

    Example:
        >>> [place_of(each) for each in ("README.md", "docs/reference/hpa.md", "examples/web/README.md", "Makefile")]
        ['index.md', 'reference/hpa.md', 'source/examples/web/README.md', 'source/Makefile.txt']
    """
    if path in _NAMED:
        return _NAMED[path]
    folder, _, name = path.partition("/")
    if folder == "docs":
        return name
    return f"source/{path if path.endswith('.md') else f'{path}.txt'}"


def rewritten(text: str, path: str, visit: Callable[[str], None]) -> str:
    """Return a page with links that are right in the site.

    Args:
        text: The page, in Markdown.
        path: The file of the page, relative to the root of the repository.
        visit: Called with each file that the page links to, relative to the root of the repository.

    Example:
        >>> linked = []
        >>> rewritten("[a](../../README.md#b) and [c](../../ocf/d.py)", "docs/e/f.md", linked.append), linked
        ('[a](../index.md#b) and [c](../source/ocf/d.py.txt)', ['README.md', 'ocf/d.py'])
    """

    def link(found: re.Match[str]) -> str:
        target = found["target"]
        if "://" in target or target.startswith(("#", "mailto:")):
            return found[0]
        file, mark, anchor = target.partition("#")
        linked = normpath(str(PurePosixPath(path).parent / file))
        visit(linked)
        here = str(PurePosixPath(place_of(path)).parent)
        return f"{found['start']}{relpath(place_of(linked), here)}{mark}{anchor}{found['end']}"

    parts = _FENCE.split(titled(text))
    return "".join(part if part.startswith("```") else _LINK.sub(link, shown_code(part)) for part in parts)


def shown_code(text: str) -> str:
    r"""Return a text whose code has `|` in tables, too: GitHub wants it escaped there, and the site shows the escape.

    Example:
        >>> print(shown_code(r"| `int \| str` | yes \| no |"))
        | `int | str` | yes \| no |
    """
    return _CODE.sub(lambda found: found[0].replace("\\|", "|"), text)


def titled(text: str) -> str:
    r"""Return a page whose files have their names as titles of their blocks. The line above a block has the name.

    Example:
        >>> print(titled("`web.yaml`:\n\n```yaml\nkind: Web\n```"))
        ```yaml title="web.yaml"
        kind: Web
        ```
    """

    def file(found: re.Match[str]) -> str:
        alone = not found["said"] and found["rest"] == ":"
        before = "" if alone else f"{found['said']}`{found['name']}`{found['rest']}\n\n"
        return f'{before}```{found["language"]} title="{found["name"]}"'

    return _FILE.sub(file, text)
