"""Objects that the components of one owner manage in a reconcile."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeAlias

__all__ = ["Claims", "UnversionedKey"]

UnversionedKey: TypeAlias = tuple[str, str, str, str]
"""Group, kind, namespace and name of an object."""


class Claims:
    """The components of one owner that take part in a reconcile, and the objects that they manage.

    Example:
        >>> claims, web = Claims(), ("apps", "Deployment", "shop", "web")
        >>> claims.announce("old", [])
        >>> claims.announce("new", [web])
        >>> claims.other_than("old", web), claims.other_than("new", web)
        ('new', '')
        >>> claims.is_stale("old", web), claims.is_stale("new", web), claims.is_stale("unknown", web)
        (True, False, False)
    """

    def __init__(self) -> None:
        self._is_complete = False
        self._by_component: dict[str, frozenset[UnversionedKey]] = {}

    @property
    def components(self) -> Collection[str]:
        """Names of the components."""
        return self._by_component.keys()

    def announce(self, component: str, objects: Collection[UnversionedKey]) -> None:
        """Record what a component manages; it replaces what was recorded before."""
        self._by_component[component] = frozenset(objects)

    def complete(self) -> None:
        """Record that all components of the owner are known."""
        self._is_complete = True

    def other_than(self, component: str, key: UnversionedKey) -> str:
        """Return the name of another component that manages an object; empty if there is none."""
        others = (name for name, objects in self._by_component.items() if name != component and key in objects)
        return next(others, "")

    def is_stale(self, component: str, key: UnversionedKey) -> bool:
        """Return whether a component that has applied an object does not manage it any more."""
        objects = self._by_component.get(component)
        return self._is_complete if objects is None else key not in objects
