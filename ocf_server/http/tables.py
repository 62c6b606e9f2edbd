"""Tables, which the server renders for `kubectl get`.

The format is described in
https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables. The columns belong to the
kind, a printer writes the cells; for a custom kind, both follow from its `additionalPrinterColumns`. Their JSON paths
have fields, indices, wildcards, and filters by equality; a path with any other syntax matches nothing
(https://kubernetes.io/docs/reference/kubectl/jsonpath/).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final

from ocf.objects import Manifest
from ocf_server.http.media import Media
from ocf_server.http.printers import PRINTERS, ROW_ORDER, AgeClock
from ocf_server.http.resource_catalog import ServedResource, TableColumn
from ocf_server.http.responses import metadata_of

__all__ = ["TableOptions", "cells", "in_row_order", "table", "table_row"]

_STEP: Final = re.compile(
    r"""\.(?P<field>(?:[^.\[\\]|\\.)+)
    |\[(?P<index>-?[0-9]+)\]
    |\[(?P<wild>\*)\]
    |\[(?P<quote>['"])(?P<name>.*?)(?P=quote)\]
    |\[\?\(@\.(?P<key>[^=\s)]+)\s*==\s*(?P<mark>['"])(?P<value>.*?)(?P=mark)\)\]""",
    re.VERBOSE,
)


def _find(path: str, value: Any) -> list[Any]:
    r"""Return the values at a path.

    Args:
        path: The path, for example `.status.conditions[?(@.type=="Ready")].status`.

    Example:
        >>> _find('.c[?(@.type=="Ready")].status', {"c": [{"type": "Ready", "status": "True"}]})
        ['True']
        >>> _find(r".labels.example\.com/tier", {"labels": {"example.com/tier": "front"}})
        ['front']
    """
    found = [value]
    position = 0
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            return []
        found = [item for one in found for item in _next(step, one)]
        position = step.end()
    return found


def _next(step: "re.Match[str]", value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        name = step["name"] if step["quote"] else re.sub(r"\\(.)", r"\1", step["field"] or "")
        if name == "*" or step["wild"]:
            yield from value.values()
        elif name in value:
            yield value[name]
    elif isinstance(value, list):
        yield from _items(step, value)


def _items(step: "re.Match[str]", value: list[Any]) -> Iterator[Any]:
    if step["wild"]:
        yield from value
    elif step["index"]:
        number = int(step["index"])
        if -len(value) <= number < len(value):
            yield value[number]
    elif step["key"]:
        for item in value:
            if isinstance(item, dict) and str(item.get(step["key"])) == step["value"]:
                yield item


_UNSET: Final = None


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Options of a table.

    Args:
        now: The instant of the request, used for ages; aware.
        include: Object to include in each row: `Metadata`, `Object` or `None`.
        heading: Whether the table contains its column definitions.
        media: Media type of the response, with the version of the table.
    """

    now: datetime
    include: str = "Metadata"
    heading: bool = True
    media: Media = field(default_factory=Media)


def in_row_order(kind: ServedResource, items: Iterable[Manifest]) -> Iterable[Manifest]:
    """Return objects in the order of their rows."""
    order = None if kind.custom else ROW_ORDER.get((kind.group, kind.kind))
    return items if order is None else sorted(items, key=order)


def table(kind: ServedResource, items: Iterable[Manifest], metadata: Manifest, options: TableOptions) -> Manifest:
    """Render objects as a table."""
    rows = [table_row(kind, item, options) for item in in_row_order(kind, items)]
    columns = [_heading(column) for column in kind.columns] if options.heading else None
    head = {"kind": "Table", "apiVersion": options.media.meta_version, "metadata": metadata}
    return {**head, "columnDefinitions": columns, "rows": rows}


def _heading(column: TableColumn) -> Manifest:
    found = asdict(column)
    del found["path"]
    return found


def table_row(kind: ServedResource, item: Manifest, options: TableOptions) -> Manifest:
    """Render the row of an object."""
    # A bookmark has no cells; clients only read the resource version of its row.
    found = cells(kind, item, options.now) if "name" in item["metadata"] else []
    if options.include == "None":
        return {"cells": found}
    return {"cells": found, "object": item if options.include == "Object" else metadata_of(item, options.media)}


def cells(kind: ServedResource, item: Manifest, now: datetime) -> list[Any]:
    """Render the cells of an object.

    Args:
        now: The instant of the request; aware.

    Returns:
        One value per column of the kind.
    """
    printer = None if kind.custom else PRINTERS.get((kind.group, kind.kind))
    if printer is not None:
        return printer(item, AgeClock(now))
    clock = AgeClock(now)
    return [item["metadata"]["name"], *(_cell(column, item, clock) for column in kind.columns[1:])]


def _cell(column: TableColumn, item: Manifest, clock: AgeClock) -> Any:
    if not column.path:
        created = item["metadata"].get("creationTimestamp")
        return created if column.name == "Created At" else clock.since(created)
    found = _find(column.path, item)
    value = found[0] if found else None
    return _typed(column, value, clock)


def _typed(column: TableColumn, value: Any, clock: AgeClock) -> Any:
    """Return the cell for a value in a column; empty if the value is not of the column's type."""
    if value is None:
        return _UNSET
    match column.type:
        case "integer":
            return int(value) if isinstance(value, int | float) else _UNSET
        case "number":
            return float(value) if isinstance(value, int | float) else _UNSET
        case "boolean":
            return value if isinstance(value, bool) else _UNSET
        case "date":
            return _since(value, clock)
        case _:
            return value if isinstance(value, str) else _text(value)


def _since(value: Any, clock: AgeClock) -> str:
    try:
        return clock.since(str(value))
    except (ValueError, TypeError):
        return "<invalid>"


def _text(value: Any) -> str:
    import json

    return json.dumps(value, separators=(",", ":")) if isinstance(value, dict | list | bool) else str(value)
