"""Selectors of the containers that an edit applies to.

A selector is a predicate on the position and the container, so any function of these two can be one. This module has
the common ones.
"""

from __future__ import annotations

from typing import Protocol

from ocf.editors.model_values import require
from ocf.lazy_types.kubernetes import V1Container

__all__ = [
    "ContainerSelector",
    "all_containers",
    "container_at_index",
    "container_named",
    "container_not_named",
    "containers_named",
    "containers_not_named",
]


class ContainerSelector(Protocol):
    """Predicate that selects the containers an edit applies to.

    Example:
        >>> from kubernetes.client import V1Container
        >>> sidecars: ContainerSelector = lambda index, container: index > 0
        >>> sidecars(0, V1Container(name="web"))
        False
    """

    def __call__(self, index: int, container: V1Container, /) -> bool:
        """Return whether the edit applies to a container.

        Args:
            index: Position of the container in the list, from 0.
            container: The container; it must not be changed.
        """
        ...


def all_containers(_index: int, _container: V1Container, /) -> bool:
    """Select every container; this function is a selector itself and is passed without a call."""
    return True


def container_named(name: str) -> ContainerSelector:
    """Return a selector of the container with a name.

    Args:
        name: Name of the container.

    Raises:
        ConfigError: If the name is not a string.
    """
    return containers_named(name)


def containers_named(*names: str) -> ContainerSelector:
    """Return a selector of the containers with the given names; without names it selects none.

    Args:
        names: Names of containers.

    Raises:
        ConfigError: If a name is not a string, for example a list of names.
    """
    wanted = _names(names)
    return lambda _index, container: container.name in wanted


def container_not_named(name: str) -> ContainerSelector:
    """Return a selector of every container except the one with a name.

    Args:
        name: Name of the container.

    Raises:
        ConfigError: If the name is not a string.
    """
    return containers_not_named(name)


def containers_not_named(*names: str) -> ContainerSelector:
    """Return a selector of every container except those with the given names; without names it selects all.

    Args:
        names: Names of containers.

    Raises:
        ConfigError: If a name is not a string, for example a list of names.
    """
    unwanted = _names(names)
    return lambda _index, container: container.name not in unwanted


def container_at_index(index: int) -> ContainerSelector:
    """Return a selector of the container at a position.

    Args:
        index: The position, from 0; a position that does not exist selects none.
    """
    return lambda position, _container: position == index


def _names(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(require("name of a container", name, str) for name in names)
