"""The names of a set whose size changes, stored in the owner's status before anything is made or deleted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import islice

from ocf.component.context import ReconcileContext
from ocf.errors import ConfigError

__all__ = ["stored_names"]


async def stored_names(
    context: ReconcileContext,
    field: str,
    *,
    count: int,
    name: Callable[[int], str],
    remove: Callable[[Sequence[str]], Awaitable[str]] | None = None,
    existing: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return the names of a set of objects; a change of them is stored in the owner's status before this returns.

    A set that grows gets the first names that are free. One that shrinks loses those that `remove` chooses. Each choice
    is made once: it is stored before the next one, so whatever fails afterwards, the next reconcile finds it.

    Args:
        context: The reconcile of the owner.
        field: The field of the status, a list of texts; its schema must have it.
        count: How many names the set has.
        name: Returns the name with a number, from 0; a different one for each.
        remove: Chooses which of the names leaves the set, such as the replica that lags the most. By default it is the
            one that came last.
        existing: Names that are in use, for an owner that has no stored names: its status was lost, or it is older than
            this function.

    Returns:
        The names, in the order in which they joined. While the owner is being deleted, those that are stored.

    Raises:
        ConfigError: If the count is not a number from 0 on, a name is not a text, the stored value is not a list of
            names, or `remove` returns another one.
        OcfError: If the names cannot be stored; see `ReconcileContext.write_status`.

    Example:
        >>> import asyncio
        >>> from ocf.component import reconciling
        >>> from ocf_server import CustomKind, EmbeddedCluster
        >>> shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "namespace": "town"}}
        >>> async def names(*counts: int) -> list[tuple[str, ...]]:
        ...     cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["town"])
        ...     async with reconciling(await cluster.create(shop, field_manager="demo"), cluster) as context:
        ...         return [await stored_names(context, "members", count=one, name="db-{}".format) for one in counts]
        >>> asyncio.run(names(2, 1, 3))
        [('db-0', 'db-1'), ('db-0',), ('db-0', 'db-1', 'db-2')]
    """
    given: object = count
    if not isinstance(given, int) or given < 0:
        raise ConfigError(f"the set in status.{field} cannot have {count} names: its count is zero or more")
    stored = context.status.get(field)
    if stored is not None and not (isinstance(stored, list) and all(isinstance(one, str) for one in stored)):
        raise ConfigError(
            f"status.{field} must be a list of names, got {type(stored).__name__}: remove it, or rename the field"
        )
    names = list(dict.fromkeys(stored if stored is not None else _texts(existing, "existing")))
    if context.is_ending:
        return tuple(names)
    while len(names) > count:
        leaving = names[-1] if remove is None else await remove(tuple(names))
        if leaving not in names:
            raise ConfigError(f'"{leaving}" cannot leave the set in status.{field}: it has {", ".join(names)}')
        names.remove(leaving)
        if remove is not None:
            # The next question may fail, and the one after that get another answer.
            await _store(context, field, names)
    # So many numbers have enough free names, unless two numbers have the same.
    numbered = dict.fromkeys(_texts([name(number) for number in range(count + len(names))], "name"))
    names += islice((one for one in numbered if one not in {*names}), count - len(names))
    if len(names) < count:
        raise ConfigError(f"the set in status.{field} needs {count} names: `name` returns the same for several numbers")
    if names != context.status.get(field):
        await _store(context, field, names)
    return tuple(names)


def _texts(names: Sequence[str], source: str) -> Sequence[str]:
    """Return names that an author gives; the next reconcile could not read anything else."""
    given: object = names
    if (
        not isinstance(given, Sequence)
        or isinstance(given, str)
        or not all(isinstance(one, str) and one for one in given)
    ):
        raise ConfigError(f"the names of a set must be texts, and not empty: `{source}` gives {names!r:.60}")
    return names


async def _store(context: ReconcileContext, field: str, names: Sequence[str]) -> None:
    context.status[field] = [*names]
    await context.write_status()
