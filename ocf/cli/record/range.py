"""The run of `ocf record --prometheus`: options are checked, the range is read, and the file is written."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ocf.cli.output import echo
from ocf.cli.output_files import check_folder, written_file
from ocf.cli.record.prometheus import Access, open_prometheus, record_range
from ocf.cli.times import parsed_instant
from ocf.concepts import SystemClock
from ocf.errors import ConfigError
from ocf.schema.kubernetes import FeatureGates
from ocf.simulation.recording.prometheus import SeriesSelection, Steps

if TYPE_CHECKING:
    from ocf.concepts import Clock
    from ocf.objects import Manifest

__all__ = ["RangeRequest", "record_from_prometheus"]

_STDOUT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRequest:
    """The options of `ocf record` with `--prometheus`.

    Args:
        output: File to write; `-` for the standard output.
        start: Begin of the range; None is an error.
    """

    url: str
    name: str
    namespace: str
    output: str
    start: str | None
    end: str
    step: timedelta
    window: timedelta
    manifest: str | None = None
    pods: str | None = None
    bearer_token_file: str | None = None
    username: str | None = None
    password_file: str | None = None
    headers: tuple[str, ...] = field(default=(), repr=False)
    ca_file: str | None = None

    def access(self) -> Access:
        """Return address and credentials."""
        return Access(
            url=self.url,
            bearer_token_file=self.bearer_token_file,
            username=self.username,
            password_file=self.password_file,
            headers=_headers(self.headers),
            ca_file=self.ca_file,
        )

    def steps(self, clock: Clock) -> Steps:
        """Return the instants of the range."""
        if self.start is None:
            raise ConfigError("--prometheus needs --start, such as 2026-01-31T12:00:00Z, or 2h for two hours ago")
        now = clock.now()
        start, end = parsed_instant("--start", self.start, now), parsed_instant("--end", self.end, now)
        if end <= start:
            raise ConfigError(f"--end must be after --start, {start.isoformat()}, got {end.isoformat()}")
        if self.step < timedelta(seconds=1):
            raise ConfigError(f"--step must be at least 1s, got {self.step.total_seconds():g}s")
        return Steps.between(start, end, self.step)


def _headers(texts: tuple[str, ...]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition(":")
        if not separator or not re.fullmatch(r"[0-9A-Za-z!#$%&'*+.^_`|~-]+", name) or "\n" in value or "\r" in value:
            raise ConfigError("--header must be NAME:VALUE; what it is now is not shown, because it may be secret")
        found[name] = value.strip()
    return found


def record_from_prometheus(request: RangeRequest, clock: Clock | None = None) -> None:
    """Record a range of time from Prometheus; the file is complete, or not written.

    Args:
        clock: Gives the present time; None for the system clock.
    """
    steps, access = request.steps(clock or SystemClock()), request.access()
    manifest = _manifest(request)
    if request.pods is not None:
        _check_expression(request.pods)
    selection = SeriesSelection(request.namespace, request.name, request.pods or "", window=request.window)
    if request.output == _STDOUT:
        asyncio.run(_record(access, selection, steps, sys.stdout, manifest))
        return
    path = Path(request.output)
    if path.exists():
        raise ConfigError(f"{request.output} exists already: name a new file")
    check_folder(path, "--output")
    with written_file(path, "--output") as temporary, temporary.open("w", encoding="utf-8") as file:
        asyncio.run(_record(access, selection, steps, file, manifest))


def _check_expression(text: str) -> None:
    try:
        re.compile(text)
    except re.error as error:
        raise ConfigError(f"--pods must be a regular expression: {error}, got {text!r}") from None


def _manifest(request: RangeRequest) -> Manifest | None:
    if request.manifest is None:
        return None
    from ocf.simulation.scenario.autoscaler_file import hpa_of_file

    found = hpa_of_file(Path(request.manifest), FeatureGates())
    name = found["metadata"].get("name")
    if name != request.name:
        raise ConfigError(f"--manifest: {request.manifest} has the HPA {name!r}, and not {request.name!r}")
    return found


async def _record(
    access: Access, selection: SeriesSelection, steps: Steps, output: TextIO, manifest: Manifest | None
) -> None:
    def warn(text: str) -> None:
        echo(f"warning: {text}", err=True)

    async with open_prometheus(access) as source:
        await record_range(source, selection, steps, output, manifest=manifest, warn=warn)
