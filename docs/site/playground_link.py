"""Hook of MkDocs: the playground as an entry of its own beside the areas, if it is part of the site."""

from typing import Any, Final

from mkdocs.structure.files import Files
from mkdocs.structure.nav import Link, Navigation

PLAYGROUND: Final = "playground/"


def on_nav(nav: Navigation, *, files: Files, **_options: Any) -> None:
    """Add the entry at the end, where each page shows it."""
    if files.get_file_from_path(f"{PLAYGROUND}index.html") is not None:
        nav.items.append(Link("Playground", PLAYGROUND))
