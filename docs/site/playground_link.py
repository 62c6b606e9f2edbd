
"""Hook of MkDocs: the entry of the playground in the navigation, if the playground is part of the site."""

from typing import Any, Final

from mkdocs.structure.files import Files
from mkdocs.structure.nav import Link, Navigation, Section

GUIDE: Final = "autoscaling/playground.md"
PLAYGROUND: Final = "playground/"


def on_nav(nav: Navigation, *, files: Files, **_options: Any) -> None:
    """Add the entry after that of its guide."""
    if files.get_file_from_path(f"{PLAYGROUND}index.html") is not None:
        _insert(nav.items)


def _insert(items: list[Any]) -> None:
    for position, each in enumerate(list(items)):
        if isinstance(each, Section):
            _insert(each.children)
        elif getattr(getattr(each, "file", None), "src_uri", "") == GUIDE:
            items.insert(position + 1, Link("Open the playground", PLAYGROUND))
