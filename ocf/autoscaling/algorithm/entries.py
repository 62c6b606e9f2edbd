"""Lists of API objects, checked entry by entry.

The API server stores no null in a list of objects, but a file or another program may have one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ocf.errors import FieldProblem, ManifestError
from ocf.objects import Manifest

__all__ = ["entries"]


def entries(value: Any, path: str, kind: str, name: str = "") -> Sequence[Manifest]:
    """Return the entries of a list of maps.

    Args:
        value: The list; None for a field that is not set.

    Example:
        >>> entries([{"type": "Ready"}, None], "status.conditions", "Pod", "web-0")
        Traceback (most recent call last):
        ocf.errors.ManifestError: Pod web-0: status.conditions[1]: must be a map, not null
    """
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise ManifestError(_subject(kind, name), [FieldProblem(path, f"must be a list, not {_shown(value)}")])
    for entry in value:
        # The class first, because isinstance of an abstract class takes ten times as long and lists of pods are long.
        if entry.__class__ is not dict and not isinstance(entry, Mapping):
            break
    else:
        return value
    raise ManifestError(
        _subject(kind, name),
        [
            FieldProblem(f"{path}[{position}]", f"must be a map, not {_shown(entry)}")
            for position, entry in enumerate(value)
            if not isinstance(entry, Mapping)
        ],
    )


def _subject(kind: str, name: str) -> str:
    return f"{kind} {name}" if name else kind


def _shown(value: object) -> str:
    if value is None:
        return "null"
    return "a map" if isinstance(value, Mapping) else f"a value of type {type(value).__name__}"
