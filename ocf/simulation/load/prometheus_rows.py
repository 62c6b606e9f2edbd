"""Rows of an answer of Prometheus to a range query.

Source: https://prometheus.io/docs/prometheus/latest/querying/api/#range-queries.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ocf.objects.paths import format_path, get_field
from ocf.simulation.input_errors import InputError, InputProblem
from ocf.simulation.load.files import PrometheusLoad, Row
from ocf.simulation.load.json_lines import line_of
from ocf.simulation.load.json_rows import parse_json
from ocf.simulation.load.text_files import BY_LINES, read_bounded
from ocf.simulation.load.timestamps import parse_value

__all__ = ["prometheus_rows"]

_PAIR = 2


def prometheus_rows(file: Path, load: PrometheusLoad) -> Iterator[Row]:
    """Yield the index, the time and the value of each sample, in order of time."""
    answer = _Answer(file)
    chosen = answer.chosen(load)
    if len(chosen) == 1:
        for index, (time, value) in enumerate(answer.samples(chosen[0])):
            yield index, time, value
        return
    sums: dict[float, float] = {}
    for position in chosen:
        for time, value in answer.samples(position):
            sums[time] = sums.get(time, 0.0) + parse_value(value)
    for index, time in enumerate(sorted(sums)):
        yield index, time, sums[time]


class _Answer:
    """An answer, with the places of its parts."""

    def __init__(self, file: Path) -> None:
        self._file = str(file)
        self._text = read_bounded(file, BY_LINES)
        content = parse_json(self._text, self._file)
        status = get_field(content, ("status",))
        if status != "success":
            said = get_field(content, ("error",), "it is not `success`")
            raise self._error(f"the query failed: {said}" if status else "not an answer of Prometheus", "status")
        kind = get_field(content, ("data", "resultType"))
        if kind != "matrix":
            detail = f"must be matrix, the answer of /api/v1/query_range, got {json.dumps(kind)}"
            raise self._error(detail, "data", "resultType")
        self._series = get_field(content, ("data", "result"))
        if not isinstance(self._series, list):
            raise self._error("must be a list of series", "data", "result")

    def chosen(self, load: PrometheusLoad) -> list[int]:
        """Return the positions of the series that count."""
        labels = [_labels(each) for each in self._series]
        chosen = [at for at, found in enumerate(labels) if load.labels.items() <= found.items()]
        shown = "; ".join(_shown(found) for found in labels[:5]) + ("; …" if len(labels) > 5 else "")  # noqa: PLR2004
        if not chosen:
            raise self._error(f"no series has the labels {_shown(load.labels)}; there are: {shown or 'none'}", "data")
        if len(chosen) > 1 and not load.sum:
            detail = f"there are {len(chosen)} series: choose one by `labels`, or set `sum: true`; there are: {shown}"
            raise self._error(detail, "data", "result")
        for at in chosen:
            name = labels[at].get("__name__", "")
            if name.endswith("_total"):
                detail = f"{name} is a counter, not a load: query rate({name}[1m])"
                raise self._error(detail, "data", "result", at, "metric")
        return chosen

    def samples(self, position: int) -> Iterator[tuple[float, str]]:
        """Yield the samples of a series."""
        path = ("data", "result", position, "values")
        samples = get_field(self._series, (position, "values"))
        if not isinstance(samples, list):
            raise self._error("required value: a list of samples; histograms are not supported", *path[:3])
        for index, sample in enumerate(samples):
            if not _is_sample(sample):
                raise self._error(f"must be [time, value], got {json.dumps(sample):.60}", *path, index)
            try:
                parse_value(sample[1])
            except ValueError as error:
                raise self._error(str(error), *path, index) from None
            yield sample[0], sample[1]

    def _error(self, detail: str, *path: str | int) -> InputError:
        try:
            line = line_of(self._text, path)
        except ValueError:
            line = None
        return InputError([InputProblem(self._file, detail, line, format_path(path))])


def _is_sample(sample: Any) -> bool:
    return (
        isinstance(sample, list)
        and len(sample) == _PAIR
        and isinstance(sample[0], int | float)
        and not isinstance(sample[0], bool)
        and isinstance(sample[1], str)
    )


def _labels(series: Any) -> dict[str, str]:
    found = get_field(series, ("metric",))
    return found if isinstance(found, dict) else {}


def _shown(labels: dict[str, str]) -> str:
    return "{" + ", ".join(f'{name}="{value}"' for name, value in labels.items()) + "}"
