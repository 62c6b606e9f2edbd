"""Objects that cannot be parsed: they keep no other object from being used."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from ocf.errors import FieldProblem, ManifestError
from ocf.objects import Manifest

__all__ = ["RejectedObject", "read_all", "read_or_reject", "without_rejected"]

_SUBJECT_PARTS: Final = 2


@dataclass(frozen=True, slots=True)
class RejectedObject:
    """An object that could not be parsed, and is not part of the snapshot.

    Args:
        subject: The object, `Pod shop/web-0`.
        node_name: The node of a pod that is on one, or the node itself; empty for other objects.
        problems: The invalid fields.
    """

    subject: str
    node_name: str
    problems: tuple[FieldProblem, ...]

    def __str__(self) -> str:
        return f"{self.subject}: " + "; ".join(map(str, self.problems))


Parsed = TypeVar("Parsed")


def read_or_reject(parse: Callable[[Manifest], Parsed], manifest: Manifest) -> Parsed | RejectedObject:
    """Parse an object.

    Args:
        parse: The parser, which raises `ManifestError`.

    Returns:
        The object, or why it cannot be parsed.
    """
    try:
        return parse(manifest)
    except ManifestError as error:
        return RejectedObject(error.subject, _node_name(error.subject, manifest), error.problems)


def without_rejected(found: Iterable[Parsed | RejectedObject], rejected: list[RejectedObject]) -> Iterator[Parsed]:
    """Yield the objects that were parsed, and append the others to a list."""
    for each in found:
        if isinstance(each, RejectedObject):
            rejected.append(each)
        else:
            yield each


def read_all(
    rejected: list[RejectedObject], parse: Callable[[Manifest], Parsed], manifests: Iterable[Manifest]
) -> Iterator[Parsed]:
    """Parse objects; those that cannot be parsed are appended to a list.

    Args:
        parse: The parser, which raises `ManifestError`.
    """
    return without_rejected((read_or_reject(parse, each) for each in manifests), rejected)


def _node_name(subject: str, manifest: Manifest) -> str:
    kind, name = subject.split(" ", _SUBJECT_PARTS - 1)
    if kind == "Node":
        return name
    spec = manifest.get("spec")
    found = spec.get("nodeName") if kind == "Pod" and isinstance(spec, dict) else None
    return found if isinstance(found, str) else ""
