"""Lists and maps whose entries have a key, as all editors change them.

Kubernetes stores named entries in plain lists: containers, environment variables, volumes, metrics. All editors change
them by the same rules:

* *ensure* replaces the first entry with the same key as a whole, at its position, or appends the entry; later
  duplicates are kept;
* *remove* removes every entry with the key; the other entries keep their order;
* a list or a map that a removal empties is unset, so that it is not sent; one that the user wrote empty stays empty.

Changes are made in place, so they are visible in a list obtained through `raw`. An entry of the wrong type, added
through `raw`, does not have a key and is not changed; writing the object reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from ocf.editors.model_values import api_name, field_type, own, require
from ocf.errors import ConfigError
from ocf.lazy_types.kubernetes import V1Container, V1PodSpec
from ocf.lazy_types.pydantic import BaseModel

__all__ = ["CONTAINERS", "INIT_CONTAINERS", "KeyedList", "ensure_entry", "remove_entry", "require_name", "unset"]

OwnerT = TypeVar("OwnerT", bound="BaseModel")
ItemT = TypeVar("ItemT", bound="BaseModel | str")


# Without slots: a frozen generic class that has them cannot be made as KeyedList[...](...) in Python 3.11.
@dataclass(frozen=True)
class KeyedList(Generic[OwnerT, ItemT]):
    """A list field of a model whose entries have a key.

    Args:
        field: Attribute name of the list.
        key: Returns the key of an entry; None for an entry that is different from all others.
        is_atomic: Whether the API server stores the list as a whole, so that it has one writer.

    Example:
        >>> from kubernetes.client import V1Container, V1EnvVar
        >>> variables = KeyedList[V1Container, V1EnvVar]("env", key=lambda variable: variable.name)
        >>> container = V1Container(name="web")
        >>> variables.ensure(container, V1EnvVar(name="MODE", value="slow"), V1EnvVar(name="MODE", value="fast"))
        >>> [(variable.name, variable.value) for variable in container.env]
        [('MODE', 'fast')]
        >>> variables.remove(container, "MODE")
        >>> container.env is None
        True
    """

    field: str
    key: Callable[[ItemT], Hashable]
    is_atomic: bool = False

    def ensure(self, owner: OwnerT, *items: ItemT) -> None:
        """Add entries or replace those with the same keys, in the given order.

        Args:
            owner: The live model.
            items: The entries; copies are stored.

        Raises:
            ConfigError: If an entry has the wrong type; then none of them is stored.
        """
        for item in [own(owner, self.field, item) for item in items]:
            self._put(owner, item)

    def remove(self, owner: OwnerT, *keys: Hashable) -> None:
        """Remove all entries with one of the keys.

        Args:
            owner: The live model.
            keys: Keys as returned by `key`.
        """
        wanted = frozenset(keys)
        self.remove_where(owner, lambda item: self.key(item) in wanted)

    def remove_where(self, owner: OwnerT, condition: Callable[[ItemT], bool]) -> None:
        """Remove all entries for which the condition is true.

        Args:
            owner: The live model.
            condition: Called once for each entry, in order.
        """
        present: list[ItemT] | None = getattr(owner, self.field)
        if not present:
            return
        kind = field_type(type(owner), self.field)
        present[:] = [item for item in present if not (isinstance(item, kind) and condition(item))]
        # A required field, such as the containers of a pod, cannot be unset: it stays an empty list.
        if not present and not type(owner).model_fields[self.field].is_required():
            unset(owner, self.field, is_whole=self.is_atomic)

    def _put(self, owner: OwnerT, item: ItemT) -> None:
        present: list[ItemT] | None = getattr(owner, self.field)
        if present is None:
            setattr(owner, self.field, [item])
            return
        place = self._find(present, item, field_type(type(owner), self.field))
        if place is None:
            present.append(item)
        else:
            present[place] = item

    def _find(self, present: list[ItemT], item: ItemT, kind: type) -> int | None:
        """Return the position of the first entry with the key of `item`."""
        wanted = self.key(item)
        if wanted is None:
            return None
        for place, other in enumerate(present):
            if isinstance(other, kind) and self.key(other) == wanted:
                return place
        return None


def unset(owner: BaseModel, field: str, *, is_whole: bool = False) -> None:
    """Unset a field whose last entry was removed.

    Args:
        owner: The live model.
        field: Attribute name of the list or the map.
        is_whole: Whether the entries of other writers go with it, as if the author had set the field to None.
    """
    setattr(owner, field, None)
    if not is_whole:
        owner.model_fields_set.discard(field)


def ensure_entry(owner: BaseModel, field: str, key: str, value: str) -> None:
    """Set one entry of a map of strings.

    Args:
        owner: The live model.
        field: Attribute name of the map.
        key: Key of the entry.
        value: Value of the entry.

    Raises:
        ConfigError: If the key or the value is not a string.
    """
    require(f"key of {api_name(owner, field)}", key, str)
    require(f"{api_name(owner, field)}[{key}]", value, str)
    present: dict[str, str] | None = getattr(owner, field)
    if present is None:
        setattr(owner, field, {key: value})
    else:
        present[key] = value


def remove_entry(owner: BaseModel, field: str, key: str) -> None:
    """Remove one entry of a map of strings if it exists.

    Args:
        owner: The live model.
        field: Attribute name of the map.
        key: Key of the entry.

    Raises:
        ConfigError: If the key is not a string.
    """
    require(f"key of {api_name(owner, field)}", key, str)
    present: dict[str, str] | None = getattr(owner, field)
    if present is None or key not in present:
        return
    del present[key]
    if not present:
        unset(owner, field)


CONTAINERS: Final[KeyedList[V1PodSpec, V1Container]] = KeyedList("containers", key=lambda container: container.name)
"""The containers of a pod spec, by name."""

INIT_CONTAINERS: Final[KeyedList[V1PodSpec, V1Container]] = KeyedList(
    "init_containers", key=lambda container: container.name
)
"""The init containers of a pod spec, by name."""


def require_name(field: str, name: str | None) -> str:
    """Return the name of an entry that is to be replaced, which its API makes optional; without one it cannot be."""
    if not name:
        raise ConfigError(f"{field}: an entry without a name cannot be replaced; give it a name, or append it")
    return name
