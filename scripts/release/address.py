"""The address of the repository in pages, templates and examples.

`REPOSITORY` is the only place to fill in; then run

    python -m scripts.release.address

which writes the address into every file that names it.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["REPOSITORY", "is_filled_in", "pages", "written"]

REPOSITORY: Final = "OWNER/ocf"
"""Owner and name of the repository on GitHub. Fill in OWNER when the repository is published."""

ROOT: Final = Path(__file__).parents[2]
_OWNER: Final = r"[\w.-]+"
_ADDRESSES: Final = re.compile(
    rf"(?P<before>https://github\.com/|\buses: |--repo ){_OWNER}/ocf(?=[/@\s>)\"'`]|$)", re.MULTILINE
)
_PAGES: Final = ("*.md", "*.yml", "*.yaml")


def is_filled_in() -> bool:
    """Return whether the address is known."""
    return not REPOSITORY.startswith("OWNER/")


def written(text: str, repository: str = REPOSITORY) -> str:
    """Return a text with the address in place of any other one of this project.

    Args:
        text: The text of a page.
        repository: Owner and name of the repository.

    Example:
        >>> written("- uses: example/ocf/simulate@main", "town/ocf")
        '- uses: town/ocf/simulate@main'
    """
    return _ADDRESSES.sub(lambda found: found["before"] + repository, text)


def pages() -> Iterator[Path]:
    """Yield the pages, templates and workflows that are part of the repository."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *_PAGES]
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603 (git)
    yield from (ROOT / name for name in done.stdout.splitlines() if (ROOT / name).is_file())


def main() -> None:
    """Write the address into every page that names another one."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if written(text) != text:
            page.write_text(written(text), encoding="utf-8")
            print(f"wrote {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
