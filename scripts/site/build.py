"""Build of the documentation site: `make site`, which also sets up what this needs.

The pages are assembled in `.site/docs`, from those of the repository and from the code, and MkDocs renders them to
`.site/html`. `.site/sources` has a digest of the sources, so that the tests of the site do not look at an old one.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import yaml

from scripts.cached_environment import SITE
from scripts.generate.playground import built_folder
from scripts.site import api, commands, mermaid, metrics, reasons, settings
from scripts.site.links import place_of, rewritten, shown_code

__all__ = [
    "HTML",
    "ROOT",
    "SETTINGS",
    "Assembly",
    "assemble",
    "assemble_folder",
    "build",
    "configuration",
    "copy_assets",
    "digest",
    "is_current",
    "playground",
    "redirects",
]

ROOT: Final = Path(__file__).parents[2]
SETTINGS: Final = ROOT / "docs" / "site"
BUILT: Final = ROOT / ".site"
HTML: Final = BUILT / "html"
GENERATED: Final[Mapping[str, Callable[[], str]]] = {
    "reference/options.md": commands.page,
    "reference/settings.md": settings.page,
    "reference/metrics.md": metrics.page,
    "reference/events.md": reasons.events_page,
    "reference/conditions.md": reasons.conditions_page,
    "reference/errors.md": reasons.errors_page,
}
# What users copy into the search as they see it: names that the text of a page has, and its title does not.
_GENERATED_KEYWORDS: Final[Mapping[str, Callable[[], list[str]]]] = {
    "reference/events.md": reasons.event_names,
    "reference/settings.md": settings.long_names,
}
_PAGES: Final = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
_SOURCES: Final = ("charts", "docs", "examples", "ocf", "ocf_server", "scripts/site", "requirements/docs.lock", *_PAGES)
_OPEN: Final = "[Open the playground](../playground/index.html){ .md-button .md-button--primary }\n"
_NOT_BUILT: Final = """\
!!! note "Not part of this site"
    This site was built without the playground. To have it here, run `make playground` before `make site`.
"""
_SECONDARY: Final = 0.2
_STAMP: Final = BUILT / "sources"
_NAMED: Final = re.compile(r"^ *- (?P<title>[^:\n]+): (?P<place>\S+\.md)$", re.MULTILINE)
_ENTRY: Final = re.compile(r"^(?P<indent> *)- (?P<name>api|kinds)$", re.MULTILINE)


@dataclass
class Assembly:
    """The pages of the site.

    Attributes:
        pages: The text of each page, by its place in the site.
    """

    pages: dict[str, str] = field(default_factory=dict)
    _waiting: list[str] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)

    def add(self, path: str) -> None:
        """Add a file of the repository, and all that it links to."""
        self._visit(path)
        while self._waiting:
            path = self._waiting.pop()
            if path.endswith(".md"):
                self.pages[place_of(path)] = rewritten((ROOT / path).read_text(encoding="utf-8"), path, self._visit)
            elif not path.startswith("docs/"):
                self.pages[place_of(path)] = _shown(ROOT / path)

    def _visit(self, path: str) -> None:
        # A link to a file that does not exist is left as it is: MkDocs reports it, with the page.
        if path not in self._seen and (ROOT / path).exists():
            self._seen.add(path)
            self._waiting.append(path)


def _shown(path: Path) -> str:
    """Return the content of a file, or the names of the files in a folder."""
    if path.is_dir():
        return "".join(f"{each.relative_to(ROOT)}\n" for each in sorted(path.rglob("*.*")) if each.suffix != ".pyc")
    return path.read_text(encoding="utf-8")


def playground() -> Path | None:
    """Return the folder of the playground; None if it is not built from the present sources."""
    folder = built_folder()
    return folder if folder.is_dir() else None


def assemble(*, with_playground: bool = False) -> dict[str, str]:
    """Return the pages of the site by their places: those of the repository, and those made from the code.

    Args:
        with_playground: Whether the playground is part of the site, at `playground/`.
    """
    assembly = Assembly()
    for path in (*_PAGES, *sorted(each.relative_to(ROOT).as_posix() for each in ROOT.glob("docs/*/*.md"))):
        assembly.add(path)
    for place, title in _titles().items():
        assembly.pages[place] = re.sub(r"\A# .*", f"# {title}", assembly.pages[place])
    guide = place_of("docs/autoscaling/playground.md")
    title, _, rest = assembly.pages[guide].partition("\n")
    assembly.pages[guide] = f"{title}\n\n{_OPEN if with_playground else _NOT_BUILT}\n{rest}"
    made = {place: shown_code(page()) for place, page in GENERATED.items()} | dict(api.pages())
    return {place: _with_search(place, text) for place, text in (assembly.pages | made).items()}


def _with_search(place: str, text: str) -> str:
    """Put before a page how the search ranks it, and words that users search for and that are not in its title.

    A page of a module also gets its title: the theme would make one of the name of the file, and spell it as words.
    """
    front: dict[str, Any] = {}
    if place.startswith("source/"):
        front = {"search": {"exclude": True}}
    elif place.startswith(("reference/api/", "reference/kinds/")) or place == "changelog.md":
        front = {"search": {"boost": _SECONDARY}}
        if place.startswith("reference/api/"):
            front["title"] = place.removeprefix("reference/api/").removesuffix(".md")
    elif tags := [*_keywords().get(place, ()), *_GENERATED_KEYWORDS.get(place, list)()]:
        front = {"tags": tags}
    if place == "index.md":
        # The doors take the width of the page.
        front["hide"] = ["navigation"]
    return f"---\n{yaml.safe_dump(front)}---\n{text}" if front and place.endswith(".md") else text


@cache
def _keywords() -> Mapping[str, list[str]]:
    found: Mapping[str, list[str]] = yaml.safe_load((SETTINGS / "keywords.yaml").read_text(encoding="utf-8"))
    return found


def _titles() -> Mapping[str, str]:
    """Return the titles of the navigation by page: an entry opens a page that has its words as title."""
    text = (SETTINGS / "mkdocs.yml").read_text(encoding="utf-8")
    return {found["place"]: found["title"] for found in _NAMED.finditer(text)}


def configuration() -> str:
    """Return the configuration of MkDocs, with the pages of the API and of the kinds in its navigation."""
    text = (SETTINGS / "mkdocs.yml").read_text(encoding="utf-8")

    def expanded(found: re.Match[str]) -> str:
        listed = (
            {"API": api.navigation()}
            if found["name"] == "api"
            else {"Kinds": ["reference/kinds.md", *api.kinds_navigation()]}
        )
        entry = yaml.safe_dump([listed], sort_keys=False, width=200)
        return "\n".join(found["indent"] + line for line in entry.splitlines())

    return _ENTRY.sub(expanded, text).replace("redirect_maps: {}", f"redirect_maps: {json.dumps(redirects())}")


def redirects() -> dict[str, str]:
    """Return the former places of pages, which lay in one folder, with the present ones."""
    pages = (place_of(path.relative_to(ROOT).as_posix()) for path in sorted(ROOT.glob("docs/*/*.md")))
    # The page of a folder is newer than the folders.
    found = {place.partition("/")[2]: place for place in pages if not place.endswith("/index.md")}
    # The playground itself is at `playground/`, so its guide had another place.
    return {name.replace("playground.md", "using-the-playground.md"): place for name, place in found.items()}


def _files() -> Iterator[Path]:
    for name in _SOURCES:
        path = ROOT / name
        yield from (path,) if path.is_file() else sorted(path.rglob("*"))


def digest() -> str:
    """Return a digest of all files from which the site is made, and of the folder of the playground."""
    found = sha256()
    for path in _files():
        if path.is_file() and path.suffix != ".pyc":
            found.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    found.update(str(playground()).encode())
    return found.hexdigest()


def is_current() -> bool:
    """Return whether the site is built, from the present sources."""
    return _STAMP.is_file() and _STAMP.read_text(encoding="utf-8") == digest()


def assemble_folder() -> Path:
    """Assemble the pages in a new folder `.site`.

    Returns:
        The configuration of MkDocs for them.
    """
    shutil.rmtree(BUILT, ignore_errors=True)
    pages = BUILT / "docs"
    page = playground()
    for place, text in assemble(with_playground=page is not None).items():
        (pages / place).parent.mkdir(parents=True, exist_ok=True)
        (pages / place).write_text(text, encoding="utf-8")
    if page is not None:
        shutil.copytree(page, pages / "playground")
    shutil.copytree(ROOT / "docs" / "pictures", pages / "pictures")
    shutil.copy(ROOT / "docs" / "autoscaling" / "scenario.schema.json", pages / "autoscaling")
    copy_assets(pages)
    found = BUILT / "mkdocs.yml"
    found.write_text(configuration(), encoding="utf-8")
    return found


def copy_assets(pages: Path) -> None:
    """Copy the styles and scripts that every page loads.

    Args:
        pages: The folder of the pages.
    """
    for name in ("site.css", "search.js", "sign.svg"):
        shutil.copy(SETTINGS / name, pages)
    shutil.copy(SITE.folder() / mermaid.FILE, pages)


def build() -> int:
    """Assemble the pages and run MkDocs in the environment of the site, unless the site is current.

    Returns:
        The exit status of MkDocs; 0 if it is not needed.
    """
    if not is_current():
        assemble_folder()
        environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        done = subprocess.run([SITE.program("mkdocs"), "build"], cwd=BUILT, check=False, env=environment)  # noqa: S603 (ours)
        if done.returncode:
            return done.returncode
        _STAMP.write_text(digest(), encoding="utf-8")
    print(f"{HTML.relative_to(ROOT)} is the site. To open it, run\n")
    print(f"    python -m http.server --bind 127.0.0.1 --directory {HTML.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(build())
