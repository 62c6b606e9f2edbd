"""Reader of manifests that collects all problems, each with its field path."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from ocf.errors import FieldProblem, ManifestError, QuantityError
from ocf.objects import Manifest, Quantity
from ocf.objects.selectors import LabelSelector

__all__ = ["NANO", "Fields", "ObjectFields", "read_object"]

NANO: Final = 10**9
"""Units of a quantity in 1: amounts are read as exact integers of billionths."""

Read = TypeVar("Read")


class Fields:
    """A value of a manifest with its path; problems of all parts go to one list.

    Args:
        value: The value, as JSON; None if the field is missing.
        path: The field, `spec.containers[0]`; empty for the object itself.

    Example:
        >>> problems = []
        >>> spec = Fields({"spec": {"replicas": "three"}}, "", problems).child("spec")
        >>> spec.integer("replicas"), str(problems[0])
        (0, "spec.replicas: must be an integer, not 'three'")
    """

    __slots__ = ("path", "problems", "value")

    def __init__(self, value: Any, path: str, problems: list[FieldProblem]) -> None:
        self.value = value
        self.path = path
        self.problems = problems

    def __contains__(self, key: str) -> bool:
        return isinstance(self.value, Mapping) and self.value.get(key) is not None

    def reject(self, detail: str, key: str = "") -> None:
        """Record a problem of this value, or of one of its fields."""
        self.problems.append(FieldProblem(self._at(key) if key else self.path, detail))

    def child(self, key: str) -> "Fields":
        """Return the map in a field; an empty one if it is missing or not a map."""
        value = self._get(key)
        if value is not None and not isinstance(value, Mapping):
            self.reject(f"must be a map, not {type(value).__name__}", key)
            value = None
        return Fields(value or {}, self._at(key), self.problems)

    def items(self, key: str) -> Iterator["Fields"]:
        """Yield the maps in a list."""
        for index, value in enumerate(self._list(key)):
            path = f"{self._at(key)}[{index}]"
            if isinstance(value, Mapping):
                yield Fields(value, path, self.problems)
            else:
                self.problems.append(FieldProblem(path, f"must be a map, not {type(value).__name__}"))

    def text(self, key: str, default: str = "") -> str:
        """Return a string."""
        value = self._get(key)
        if value is None:
            return default
        if isinstance(value, str):
            return value
        self.reject(f"must be a string, not {value!r}", key)
        return default

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings."""
        found = []
        for index, value in enumerate(self._list(key)):
            if isinstance(value, str):
                found.append(value)
            else:
                self.problems.append(FieldProblem(f"{self._at(key)}[{index}]", f"must be a string, not {value!r}"))
        return tuple(found)

    def integer(self, key: str, default: int = 0) -> int:
        """Return an integer."""
        value = self._get(key)
        if value is None:
            return default
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        self.reject(f"must be an integer, not {value!r}", key)
        return default

    def flag(self, key: str) -> bool:
        """Return a boolean; False if it is missing."""
        value = self._get(key)
        if value is None or isinstance(value, bool):
            return bool(value)
        self.reject(f"must be a boolean, not {value!r}", key)
        return False

    def labels(self, key: str) -> dict[str, str]:
        """Return a map of strings, as labels and annotations are."""
        found = {}
        for name, value in self.child(key).value.items():
            if isinstance(name, str) and isinstance(value, str):
                found[name] = value
            else:
                self.problems.append(FieldProblem(f"{self._at(key)}[{name}]", f"must be a string, not {value!r}"))
        return found

    def amounts(self, key: str) -> dict[str, int]:
        """Return a map of quantities, in billionths."""
        found = {}
        for name, value in self.child(key).value.items():
            try:
                found[str(name)] = Quantity.parse(value).nano
            except QuantityError as error:
                self.problems.append(FieldProblem(f"{self._at(key)}.{name}", str(error)))
        return found

    def selector(self, key: str) -> LabelSelector:
        """Return a label selector; one that matches nothing if the field is missing or invalid."""
        value = self._get(key)
        try:
            return LabelSelector.of(value)
        except ManifestError as error:
            for problem in error.problems:
                path = f"{self._at(key)}.{problem.path}" if problem.path else self._at(key)
                self.problems.append(FieldProblem(path, problem.detail))
        return LabelSelector(nothing=True)

    def _at(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def _get(self, key: str) -> Any:
        return self.value.get(key)

    def _list(self, key: str) -> list[Any]:
        value = self._get(key)
        if value is None or isinstance(value, list | tuple):
            return list(value or ())
        self.reject(f"must be a list, not {type(value).__name__}", key)
        return []


@dataclass(frozen=True, slots=True)
class ObjectFields:
    """The parts of an object of Kubernetes."""

    top: Fields
    metadata: Fields
    spec: Fields
    status: Fields

    @property
    def name(self) -> str:
        """The name of the object."""
        return self.metadata.text("name")

    @property
    def namespace(self) -> str:
        """Its namespace; `default` if it has none."""
        return self.metadata.text("namespace") or "default"

    @property
    def deleting(self) -> bool:
        """Whether it is being deleted."""
        return "deletionTimestamp" in self.metadata


def read_object(
    kind: str, manifest: Manifest, read: Callable[[ObjectFields], Read], *, namespaced: bool = True
) -> Read:
    """Read an object, and raise all of its problems at once.

    Example:
        >>> read_object("Node", {"spec": {"unschedulable": "no"}, "metadata": {"name": "n1"}},
        ...     lambda found: found.spec.flag("unschedulable"), namespaced=False)
        Traceback (most recent call last):
        ocf.errors.ManifestError: Node n1: spec.unschedulable: must be a boolean, not 'no'
    """
    problems: list[FieldProblem] = []
    top = Fields(manifest, "", problems)
    found = ObjectFields(top, *(top.child(part) for part in ("metadata", "spec", "status")))
    made = read(found)
    if problems:
        subject = f"{found.namespace}/{found.name}" if namespaced else found.name
        raise ManifestError(f"{kind} {subject}", dict.fromkeys(problems))
    return made
