"""A dashboard's panels with their values: what Grafana computes between its data source and its drawing."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ocf.simulation.measures.formatting import duration_text, number_text
from scripts.record.dashboard_parts.prometheus import Query, Series
from scripts.record.dashboard_parts.run import END, SCRAPE_INTERVAL, START
from tests.runtime.monitoring.queries import sent

__all__ = ["Line", "Panel", "Place", "digest", "filled", "in_unit", "query_of"]

# At a scrape interval of 15 seconds, Grafana computes four of them.
_RATE_INTERVAL: Final = "1m"
_LABEL: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")


class Place(NamedTuple):
    """The place of a panel, as its `gridPos` gives it.

    Args:
        x: Columns to the left of it, of 24.
        y: Rows above it, of 30 pixels.
        w: Its width in columns.
        h: Its height in rows.
    """

    x: int
    y: int
    w: int
    h: int


class Line(NamedTuple):
    """A series of a panel.

    Args:
        name: Its entry in the legend.
        points: Unix seconds to the value at this time.
    """

    name: str
    points: Mapping[int, float]


class Panel(NamedTuple):
    """A panel with its values: lines, or the rows of a table.

    Args:
        title: Its title.
        description: Its description.
        unit: The unit of its values.
        place: Its place.
        lines: The lines of a time series; None for a table.
        header: The names of a table's columns.
        rows: The texts of its rows.
        is_stacked: Whether each line is drawn above the sum of those before it.
    """

    title: str
    description: str
    unit: str
    place: Place
    lines: Sequence[Line] | None
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    is_stacked: bool = False


def query_of(panel: Mapping[str, Any]) -> Query:
    """Return the query that Grafana sends for a panel.

    Args:
        panel: The panel, of the dashboard's JSON.
    """
    target = panel["targets"][0]
    expression = sent(target["expr"], rate_interval=_RATE_INTERVAL)
    return Query(expression, START, END, None if target["instant"] else SCRAPE_INTERVAL)


def filled(panel: Mapping[str, Any], found: Sequence[Series]) -> Panel:
    """Return a panel with its values.

    Args:
        panel: The panel, of the dashboard's JSON.
        found: The result of its query.
    """
    defaults = panel["fieldConfig"]["defaults"]
    title, description, unit, place = panel["title"], panel["description"], defaults["unit"], Place(**panel["gridPos"])
    if panel["type"] == "table":
        columns = _columns(panel["transformations"])
        rows = [[_cell(each, name, unit) for name in columns] for each in found]
        return Panel(title, description, unit, place, None, [*columns.values()], rows)
    legend = panel["targets"][0]["legendFormat"]
    lines = [Line(_name(legend, each), each.points) for each in found]
    return Panel(title, description, unit, place, lines, is_stacked="stacking" in defaults["custom"])


def in_unit(value: float, unit: str) -> str:
    """Return a value as text, with a unit of Grafana.

    Args:
        value: The value.
        unit: The unit: `s`, `ops` or `short`.

    Raises:
        KeyError: If the unit is another one.

    Example:
        >>> in_unit(90, "s"), in_unit(0.2, "ops"), in_unit(3, "short")
        ('1 min 30 s', '0.2 ops/s', '3')
    """
    return {"s": duration_text(value), "ops": f"{number_text(value)} ops/s", "short": number_text(value)}[unit]


def digest(panels: Sequence[Mapping[str, Any]]) -> str:
    """Return the SHA-256 digest of panels, by which a picture names what it was drawn from.

    Args:
        panels: The panels of the dashboard's JSON.
    """
    return hashlib.sha256(json.dumps(panels, sort_keys=True).encode()).hexdigest()


def _columns(transformations: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the columns of a table: name of the field to the name that is shown, in order."""
    chosen, organized = (each["options"] for each in transformations)
    ordered = sorted(chosen["include"]["names"], key=lambda name: int(organized["indexByName"][name]))
    return {name: organized["renameByName"][name] for name in ordered}


def _cell(series: Series, field: str, unit: str) -> str:
    (value,) = series.points.values()
    return in_unit(value, unit) if field == "Value" else series.labels.get(field, "")


def _name(legend: str, series: Series) -> str:
    return _LABEL.sub(lambda label: series.labels.get(label[1], ""), legend)
