"""Recording of an autoscaler from Prometheus: the series of a range of time, as `ocf record` would have recorded it."""

from __future__ import annotations

import asyncio
import json
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Final, Protocol, TextIO

import aiohttp

from ocf.autoscaling import default
from ocf.autoscaling.algorithm import Autoscaler, Metric
from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.objects.timestamps import format_time
from ocf.schema.metric_sources import RESOURCE_METRICS
from ocf.simulation.recording import RecordingWriter, reduced
from ocf.simulation.recording.prometheus import (
    HPA_SOURCES,
    Matrix,
    Need,
    RangeObjects,
    RangeSpec,
    RecordedTarget,
    SeriesSelection,
    SeriesSource,
    Steps,
    matrix_of,
    missing_series,
    target_sources,
)

__all__ = ["Access", "Ranges", "open_prometheus", "record_range"]

_PATH: Final = "/api/v1/query_range"
_POINTS: Final = 2_000
"""Instants of one query: fewer than Prometheus allows, so that the series of a part fit into memory."""
_LONGEST: Final = 256 * 2**20
_TIMEOUT: Final = timedelta(minutes=3)


class Ranges(Protocol):
    """A server that answers range queries."""

    async def range(self, expression: str, steps: Steps) -> Matrix:
        """Return the series of an expression."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Address and credentials of a server; no message contains a credential.

    Args:
        headers: More headers, such as that of a tenant.
    """

    url: str
    bearer_token_file: str | None = None
    username: str | None = None
    password_file: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    ca_file: str | None = None

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ConfigError(
                f"--prometheus must be an address that begins with http:// or https://, got {self.shown!r}"
            )
        if "@" in self.url.partition("://")[2].partition("/")[0]:
            raise ConfigError("--prometheus must not contain a user: use --username and --password-file")
        if (self.username is None) is not (self.password_file is None):
            raise ConfigError("--username and --password-file belong together")
        if self.username is not None and self.bearer_token_file is not None:
            raise ConfigError("--bearer-token-file and --username exclude each other")

    @property
    def shown(self) -> str:
        """The address without user and query."""
        scheme, separator, rest = self.url.partition("://")
        host = rest.partition("?")[0].rpartition("@")[2]
        return f"{scheme}{separator}{host}" if separator else scheme.partition("?")[0]

    def all_headers(self) -> dict[str, str]:
        """Return the headers of a request."""
        found = dict(self.headers)
        if self.bearer_token_file is not None:
            found["Authorization"] = f"Bearer {_secret(self.bearer_token_file, '--bearer-token-file')}"
        if self.username is not None and self.password_file is not None:
            password = _secret(self.password_file, "--password-file")
            found["Authorization"] = f"Basic {b64encode(f'{self.username}:{password}'.encode()).decode()}"
        return found

    def tls(self) -> ssl.SSLContext | bool:
        """Return how certificates are verified."""
        if self.ca_file is None:
            return True
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"--ca-file: {self.ca_file} cannot be used: {error.strerror or error}") from None


def _secret(file: str, option: str) -> str:
    try:
        found = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text"
        raise ConfigError(f"{option}: {file} cannot be read: {reason}") from None
    if not found or "\n" in found:
        raise ConfigError(f"{option}: {file} must have one line")
    return found


@dataclass(frozen=True, slots=True)
class _Prometheus:
    """Ranges over HTTP."""

    access: Access
    session: aiohttp.ClientSession

    async def range(self, expression: str, steps: Steps) -> Matrix:
        form = {
            "query": expression,
            "start": f"{steps.start.timestamp():.3f}",
            "end": f"{steps.end.timestamp():.3f}",
            "step": f"{steps.step.total_seconds():g}",
        }
        where = self.access.shown
        try:
            # Not even to the same server: a redirect of a POST becomes a GET, without the query.
            url = f"{self.access.url.rstrip('/')}{_PATH}"
            async with self.session.post(url, data=form, allow_redirects=False) as response:
                content = await _bounded(response.content)
                status, location = response.status, response.headers.get("Location", "")
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ConfigError(f"{where} cannot be reached: {str(error) or type(error).__name__}") from None
        if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            raise ConfigError(f"{where} redirects to {location.partition('?')[0]}: use that address")
        if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            raise ConfigError(
                f"{where} denies access (HTTP {status}): check --bearer-token-file, --username or --header"
            )
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError):
            raise ConfigError(f"{where} answers with HTTP {status}, and not as Prometheus: check the address") from None
        try:
            return matrix_of(answer, steps)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}: {expression}") from None


async def _bounded(content: aiohttp.StreamReader) -> bytes:
    parts, length = list[bytes](), 0
    async for part in content.iter_any():
        length += len(part)
        if length > _LONGEST:
            raise ConfigError(f"the answer to a query is longer than {_LONGEST // 2**20} MiB: use a longer --step")
        parts.append(part)
    return b"".join(parts)


@asynccontextmanager
async def open_prometheus(access: Access) -> AsyncIterator[Ranges]:
    """Open a connection to a server; requests use the proxies of the environment."""
    headers, connector = access.all_headers(), aiohttp.TCPConnector(ssl=access.tls())
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT.total_seconds())
    async with aiohttp.ClientSession(headers=headers, connector=connector, timeout=timeout, trust_env=True) as session:
        yield _Prometheus(access, session)


async def record_range(
    source: Ranges,
    selection: SeriesSelection,
    steps: Steps,
    output: TextIO,
    *,
    manifest: Manifest | None = None,
    warn: Callable[[str], object],
) -> None:
    """Write a recording of a range of time.

    Args:
        selection: The HPA; regular expression of its pods, empty for those that its target has created.
        manifest: A manifest of the HPA; None if the series have all that counts.
    """
    series = await _all_parts(source, HPA_SOURCES, selection, steps)
    known = {key for key, matrix in series.items() if matrix.series}
    _require(HPA_SOURCES, known, f"HPA {selection.namespace}/{selection.hpa}", steps)
    spec = RangeSpec(selection, series, manifest)
    reference = spec.target()
    target = RecordedTarget(reference["kind"], reference["name"], any_owner=bool(selection.pods))
    selection = SeriesSelection(
        selection.namespace, selection.hpa, selection.pods or target.pods, target.name, selection.window
    )
    metrics = _metrics(spec, steps)
    resources = [each.name for each in metrics if each.type in RESOURCE_METRICS]
    sources = target_sources(target.kind, resources)
    recorder = RecordingWriter(selection.hpa, selection.namespace)
    output.write(f"{recorder.header()}\n")
    objects, first, seen = RangeObjects(spec, target, selection), 0, set[str]()
    for part in steps.parts(_POINTS):
        found = await _part(source, sources, selection, part)
        seen.update(key for key, matrix in found.items() if matrix.series)
        for at, each in objects.part(part, first, found):
            line = recorder.line(at, [reduced(manifest) for manifest in each])
            if line:
                output.write(f"{line}\n")
        first += part.count
    _require(sources, seen, f"{target.kind} {selection.namespace}/{target.name}", steps)
    missing = missing_series((*HPA_SOURCES, *sources), known | seen, Need.EXPECTED)
    if len(resources) < len(metrics) and "value" not in known:
        names = ", ".join(each.name for each in metrics if each.type not in RESOURCE_METRICS)
        missing.append(f"kube_horizontalpodautoscaler_status_target_metric: the metrics {names} have no values")
    for text in missing:
        warn(f"no series {text}")


async def _all_parts(
    source: Ranges, sources: Sequence[SeriesSource], selection: SeriesSelection, steps: Steps
) -> dict[str, Matrix]:
    """Return the series of the whole range; those of an HPA are few."""
    found: dict[str, Matrix] = {}
    first = 0
    for part in steps.parts(_POINTS):
        for key, matrix in (await _part(source, sources, selection, part)).items():
            shifted = tuple(each.shifted(first) for each in matrix.series)
            found[key] = Matrix((*found[key].series, *shifted) if key in found else shifted)
        first += part.count
    return found


async def _part(
    source: Ranges, sources: Sequence[SeriesSource], selection: SeriesSelection, steps: Steps
) -> dict[str, Matrix]:
    async with asyncio.TaskGroup() as group:
        tasks = {each.key: group.create_task(source.range(each.expression(selection), steps)) for each in sources}
    return {key: task.result() for key, task in tasks.items()}


def _require(sources: Sequence[SeriesSource], seen: set[str], subject: str, steps: Steps) -> None:
    missing = missing_series(sources, seen, Need.REQUIRED)
    if missing:
        span = f"from {format_time(steps.start)} to {format_time(steps.end)}"
        raise ConfigError("\n".join(f"{subject}: no series {each} ({span})" for each in missing))


def _metrics(spec: RangeSpec, steps: Steps) -> Sequence[Metric]:
    """Return the metrics of the HPA at the first instant at which it was scraped."""
    hpa = next((found for number in range(steps.count) if (found := spec.at(number)) is not None), None)
    return () if hpa is None else Autoscaler.of(default(hpa)).metrics
