"""The wheel of a package that no index has, made anew from its installed files: no build, no index, no checkout.

Source of the formats: https://packaging.python.org/en/latest/specifications/binary-distribution-format/ and
https://packaging.python.org/en/latest/specifications/direct-url/.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import Distribution
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import unquote, urlsplit
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

__all__ = ["source_folder", "write_wheel"]

# What installers write, or make from what a wheel has.
_OF_INSTALLERS: Final = frozenset({"INSTALLER", "REQUESTED", "RECORD", "direct_url.json"})
# The earliest time of a zip file, so that the same files give the same wheel.
_TIME: Final = (1980, 1, 1, 0, 0, 0)


def source_folder(installed: Distribution) -> Path | None:
    """Return the folder that an editable package is imported from; None for a package that is not editable."""
    origin = _origin(installed)
    if origin is None or origin.get("dir_info", {}).get("editable") is not True:
        return None
    return Path(unquote(urlsplit(origin["url"]).path))


def write_wheel(installed: Distribution, folder: Path) -> Path | None:
    """Write the wheel of a package that was installed from a folder, a repository or a file.

    Args:
        folder: Where to write it; created if it does not exist.

    Returns:
        The wheel; None if the package came from an index, or is editable and has no files of its own.
    """
    if _origin(installed) is None or source_folder(installed) is not None:
        return None
    name = installed.metadata["Name"].replace("-", "_").lower()
    wheel = folder / f"{name}-{installed.version}-{_tag(installed)}.whl"
    folder.mkdir(parents=True, exist_ok=True)
    record, listed = f"{name}-{installed.version}.dist-info/RECORD", ""
    with ZipFile(wheel, "w", ZIP_DEFLATED) as archive:
        for path, content in _files(installed):
            archive.writestr(_entry(path), content)
            digest = base64.urlsafe_b64encode(sha256(content).digest()).rstrip(b"=").decode()
            listed += f"{path},sha256={digest},{len(content)}\n"
        archive.writestr(_entry(record), f"{listed}{record},,\n")
    return wheel


def _origin(installed: Distribution) -> dict[str, Any] | None:
    """Return where a package was installed from; None if an index had it."""
    text = installed.read_text("direct_url.json")
    return None if text is None else json.loads(text)


def _tag(installed: Distribution) -> str:
    """Return the compatibility tag, `py3-none-any`."""
    lines = (installed.read_text("WHEEL") or "").splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("Tag: ")), "py3-none-any")


def _files(installed: Distribution) -> Iterator[tuple[str, bytes]]:
    """Yield the files that the wheel had; not the programs, which an installer makes from the entry points."""
    # Those that describe the package are the last ones of a wheel, where installers find them fastest.
    for path in sorted(installed.files or (), key=lambda one: (one.parts[0].endswith(".dist-info"), str(one))):
        place = PurePosixPath(path)
        if ".." in place.parts or place.is_absolute() or "__pycache__" in place.parts:
            continue
        if place.parts[0].endswith(".dist-info") and place.name in _OF_INSTALLERS:
            continue
        yield str(place), Path(str(path.locate())).read_bytes()


def _entry(path: str) -> ZipInfo:
    entry = ZipInfo(path, _TIME)
    entry.compress_type = ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry
