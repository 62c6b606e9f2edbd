"""Validation of projected volumes, and of the files that entries of an object become.

Source: `validateProjectionSources` and `validateKeyToPath` in `pkg/apis/core/validation/validation.go` of Kubernetes.
Cluster trust bundles and pod certificates are not checked: their feature gates are off by default.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from ocf.objects.field_errors import FieldError, forbidden, invalid, required
from ocf_server.validation.downward import file_errors
from ocf_server.validation.file_paths import file_mode, unreserved_path

__all__ = ["item_errors", "projected_errors"]

_Json: TypeAlias = Mapping[str, Any]

# The bounds of ValidateTokenRequest, and of the projected volume.
_SHORTEST_TOKEN: Final = 600
_LONGEST_TOKEN: Final = 2**32
_SOURCES: Final = ("secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate")


def item_errors(item: _Json, path: str) -> Iterator[FieldError]:
    """Yield the errors of an entry that becomes a file."""
    for name in ("key", "path"):
        if not item.get(name):
            yield required(f"{path}.{name}")
    yield from unreserved_path(item.get("path", ""), f"{path}.path")
    yield from file_mode(item.get("mode"), f"{path}.mode")


def projected_errors(volume: _Json, path: str) -> Iterator[FieldError]:
    """Yield the errors of a projected volume."""
    yield from file_mode(volume.get("defaultMode"), f"{path}.defaultMode")
    used: set[str] = set()
    for index, source in enumerate(volume.get("sources") or ()):
        place = f"{path}.sources[{index}]"
        for name in ("secret", "configMap"):
            if name in source:
                yield from _object_errors(source[name], f"{place}.{name}", used, path)
        if "downwardAPI" in source:
            yield from _downward_errors(source["downwardAPI"], f"{place}.downwardAPI", used, path)
        if "serviceAccountToken" in source:
            yield from _token_errors(source["serviceAccountToken"], f"{place}.serviceAccountToken", path)
        if sum(name in source for name in _SOURCES) > 1:
            yield forbidden(place, "may not specify more than 1 volume type per source")


def _object_errors(source: _Json, path: str, used: set[str], volume_path: str) -> Iterator[FieldError]:
    if not source.get("name"):
        yield required(f"{path}.name")
    for index, item in enumerate(source.get("items") or ()):
        yield from item_errors(item, f"{path}.items[{index}]")
        yield from _conflicts(item.get("path", ""), source.get("name", ""), used, volume_path)


def _downward_errors(source: _Json, path: str, used: set[str], volume_path: str) -> Iterator[FieldError]:
    for file in source.get("items") or ():
        yield from file_errors(file, path)
        yield from _conflicts(file.get("path", ""), file.get("path", ""), used, volume_path)


def _conflicts(file: str, shown: str, used: set[str], path: str) -> Iterator[FieldError]:
    if file in used:
        yield invalid(path, shown, "conflicting duplicate paths")
    elif file:
        used.add(file)


def _token_errors(token: _Json, path: str, volume_path: str) -> Iterator[FieldError]:
    seconds = token["expirationSeconds"]
    if seconds < _SHORTEST_TOKEN:
        yield invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
    if seconds > _LONGEST_TOKEN:
        yield invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
    if token.get("path"):
        yield from unreserved_path(token["path"], f"{volume_path}.path")
    else:
        yield required(f"{volume_path}.path")
