"""Which containers of a pod an edit is for.

A selector is a predicate, so any function of position and container will do; the ones here are for the usual cases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ocf.editors.model_values import require

if TYPE_CHECKING:
    from kubernetes.client import V1Container

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
    """Tells whether an edit is for a container.

    Example:
        >>> from kubernetes.client import V1Container
        >>> sidecars: ContainerSelector = lambda index, container: index > 0
        >>> sidecars(0, V1Container(name="web"))
        False
    """

    def __call__(self, index: int, container: V1Container, /) -> bool:
        """Answer for one container.

        Args:
            index: Its position in the list, from 0.
            container: The container, to be looked at only.

        Returns:
            Whether the edit is for it.
        """
        ...


def all_containers(_index: int, _container: V1Container, /) -> bool:
    """Select every container; a selector itself, to be given without a call."""
    return True


def container_named(name: str) -> ContainerSelector:
    """Select the container of a name.

    Args:
        name: Its name.

    Returns:
        The selector.

    Raises:
        ConfigError: If the name is no text.
    """
    return containers_named(name)


def containers_named(*names: str) -> ContainerSelector:
    """Select the containers of some names; without a name, none.

    Args:
        names: Their names.

    Returns:
        The selector.

    Raises:
        ConfigError: If a name is no text, for example a list of names.
    """
    wanted = _names(names)
    return lambda _index, container: container.name in wanted


def container_not_named(name: str) -> ContainerSelector:
    """Select every container but that of a name.

    Args:
        name: The name.

    Returns:
        The selector.

    Raises:
        ConfigError: If the name is no text.
    """
    return containers_not_named(name)


def containers_not_named(*names: str) -> ContainerSelector:
    """Select every container but those of some names; without a name, all.

    Args:
        names: The names.

    Returns:
        The selector.

    Raises:
        ConfigError: If a name is no text, for example a list of names.
    """
    unwanted = _names(names)
    return lambda _index, container: container.name not in unwanted


def container_at_index(index: int) -> ContainerSelector:
    """Select the container at a position.

    Args:
        index: The position, from 0; one that does not exist selects none.

    Returns:
        The selector.
    """
    return lambda position, _container: position == index


def _names(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(require("name of a container", name, str) for name in names)
