"""What the wheel and the sdist of a release must contain."""

import tarfile
import zipfile
from collections.abc import Collection, Iterator
from email import message_from_string
from pathlib import Path
from typing import Final

__all__ = ["archive_problems"]

_IN_WHEEL: Final = (
    "ocf/py.typed",
    "ocf/cli/__init__.py",
    "ocf_server/py.typed",
    "{info}/licenses/LICENSE",
    "{info}/entry_points.txt",
)
_IN_SDIST: Final = ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "SECURITY.md", "ocf/py.typed", "tests")


def archive_problems(folder: Path, version: str) -> Iterator[str]:
    """Yield what is wrong with the wheel and the sdist in a folder.

    Args:
        folder: The folder, with nothing else in it.
        version: The version that they must have.
    """
    wheel, sdist = folder / f"ocf-{version}-py3-none-any.whl", folder / f"ocf-{version}.tar.gz"
    found = {path.name for path in folder.iterdir()}
    if found != {wheel.name, sdist.name}:
        yield f"built {', '.join(sorted(found)) or 'nothing'}; must be {wheel.name} and {sdist.name}"
        return
    info = f"ocf-{version}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        yield from _missing(wheel.name, names, [each.format(info=info) for each in _IN_WHEEL])
        foreign = {name.split("/")[0] for name in names} - {"ocf", "ocf_server", info}
        if foreign:
            yield f"{wheel.name} contains {', '.join(sorted(foreign))}; must contain ocf and ocf_server alone"
        metadata = message_from_string(archive.read(f"{info}/METADATA").decode())
    if metadata["Version"] != version:
        yield f"{wheel.name} has version {metadata['Version']}, must be {version}"
    with tarfile.open(sdist) as archive:
        inside = [name.partition("/")[2] for name in archive.getnames()]
        yield from _missing(sdist.name, inside, _IN_SDIST)


def _missing(archive: str, names: Collection[str], wanted: Collection[str]) -> Iterator[str]:
    for each in wanted:
        if not any(name == each or name.startswith(f"{each}/") for name in names):
            yield f"{archive} lacks {each}"
