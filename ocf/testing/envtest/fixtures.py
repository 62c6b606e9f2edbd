"""Pytest fixtures for a control plane, exported by `ocf.testing.plugin`.

The control plane is started once per test run. It consists of processes only and is independent of event loops. Each
test gets a new client in the event loop of that test.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

import pytest

from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.testing.async_fixture import async_fixture
from ocf.testing.envtest.binaries import REMEDY, Program, Programs, find_programs
from ocf.testing.envtest.bootstrap import MASTERS
from ocf.testing.envtest.controlplane import ControlPlane

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.metrics_stub import MetricsStub

__all__ = [
    "REQUIRE",
    "Envtest",
    "RunControllers",
    "RunKwok",
    "RunScheduler",
    "envtest",
    "envtest_cluster",
    "envtest_controllers",
    "envtest_feature_gates",
    "envtest_kwok",
    "envtest_plane",
    "envtest_programs",
    "envtest_scheduler",
    "metrics_stub",
    "pytest_runtest_makereport",
]

REQUIRE: Final = "OCF_REQUIRE"
"""The environment variable with a comma-separated list of prerequisites, such as `envtest`.

Tests without a listed prerequisite fail instead of being skipped.
"""

_PREFIX: Final = "envtest: "  # of the reasons for skipping a test
_SKIPPED: Final = f"tests on a real API server are skipped; {REMEDY} installs the programs that they need"
_LONGEST: Final = 40  # characters of a test's name in the name of its namespace


@dataclass(frozen=True, slots=True)
class Envtest:
    """The namespace of one test on the shared control plane.

    Args:
        plane: The control plane.
        namespace: The namespace of the test.
        kubeconfig: Kubeconfig of the administrator with this namespace as the default.
    """

    plane: ControlPlane
    namespace: str
    kubeconfig: Path

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl in the namespace.

        Args:
            *arguments: Its command-line arguments.
            stdin: Its standard input.

        Returns:
            Its standard output.

        Raises:
            ConfigError: If kubectl is missing or fails.
        """
        return self.plane.kubectl(*arguments, stdin=stdin, kubeconfig=self.kubeconfig)


class RunControllers(Protocol):
    """Type of the fixture `envtest_controllers`: runs controllers for the duration of a block."""

    def __call__(
        self,
        *names: str,
        hpa_sync_period: timedelta = ...,
        arguments: Mapping[str, str | None] | None = ...,
    ) -> AbstractContextManager[None]:
        """Run controllers; see `ControlPlane.controllers`."""
        ...


class RunScheduler(Protocol):
    """Type of the fixture `envtest_scheduler`: runs the scheduler for the duration of a block."""

    def __call__(
        self, configuration: Mapping[str, Any] | None = ..., *, arguments: Mapping[str, str | None] | None = ...
    ) -> AbstractContextManager[None]:
        """Run the scheduler; see `ControlPlane.scheduler`."""
        ...


class RunKwok(Protocol):
    """Type of the fixture `envtest_kwok`: runs kwok for the duration of a block."""

    def __call__(
        self, stages: Sequence[Manifest] | None = ..., *, arguments: Mapping[str, str | None] | None = ...
    ) -> AbstractContextManager[None]:
        """Run kwok; see `ControlPlane.kwok`."""
        ...


def _skip(reason: str) -> NoReturn:
    """Skip a test, or fail it if `OCF_REQUIRE` lists `envtest`."""
    if "envtest" in re.split(r"[,\s]+", os.environ.get(REQUIRE, "")):
        pytest.fail(f"{reason} ({REQUIRE} requires them)", pytrace=False)
    pytest.skip(f"{_PREFIX}{reason}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report one location for all tests skipped for the same reason, so that the summary shows them in one line."""
    report = yield
    if isinstance(report.longrepr, tuple) and report.longrepr[2].startswith(f"Skipped: {_PREFIX}"):
        report.longrepr = (__file__, _skip.__code__.co_firstlineno, report.longrepr[2])
    return report


@pytest.fixture(scope="session")
def envtest_programs() -> Programs:
    """Return the programs of a control plane; skip the test if they are not installed."""
    try:
        programs, problem = find_programs(), ""
    except ConfigError as error:
        programs, problem = None, str(error)
    if problem:
        pytest.fail(problem, pytrace=False)
    return programs or _skip(_SKIPPED)


@pytest.fixture(scope="session")
def envtest_feature_gates() -> Mapping[str, bool]:
    """Return the Kubernetes feature gates of the control plane; none unless overridden."""
    return {}


@pytest.fixture(scope="session")
def envtest_plane(envtest_programs: Programs, envtest_feature_gates: Mapping[str, bool]) -> Iterator[ControlPlane]:
    """Start the control plane that all tests of a run share."""
    with ControlPlane(envtest_programs, feature_gates=envtest_feature_gates) as plane:
        yield plane


@pytest.fixture
def envtest(envtest_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Envtest]:
    """Create a namespace for the test on the control plane."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:_LONGEST].strip("-")
    with envtest_plane.namespace(f"{words or 'test'}-") as namespace:
        kubeconfig = envtest_plane.kubeconfig_for("tester", MASTERS, namespace=namespace)
        yield Envtest(envtest_plane, namespace, kubeconfig)


@async_fixture
async def envtest_cluster(envtest_plane: ControlPlane) -> AsyncIterator[ApiServerCluster]:
    """Open a client of the control plane in the test's event loop; needs pytest-asyncio or anyio's plugin."""
    async with await envtest_plane.cluster() as cluster:
        yield cluster


@async_fixture
async def metrics_stub(envtest_plane: ControlPlane) -> AsyncIterator[MetricsStub]:
    """Start a metrics server behind the control plane; needs pytest-asyncio or anyio's plugin."""
    from ocf.testing.metrics_stub import MetricsStub

    async with MetricsStub(envtest_plane) as stub:
        yield stub


@pytest.fixture
def envtest_controllers(envtest_programs: Programs, request: pytest.FixtureRequest) -> RunControllers:
    """Return `ControlPlane.controllers`; skip the test if there is no controller manager."""
    return _plane_with(Program.CONTROLLER_MANAGER, "controllers", envtest_programs, request).controllers


@pytest.fixture
def envtest_scheduler(envtest_programs: Programs, request: pytest.FixtureRequest) -> RunScheduler:
    """Return `ControlPlane.scheduler`; skip the test if there is no scheduler."""
    return _plane_with(Program.SCHEDULER, "the scheduler", envtest_programs, request).scheduler


@pytest.fixture
def envtest_kwok(envtest_programs: Programs, request: pytest.FixtureRequest) -> RunKwok:
    """Return `ControlPlane.kwok`; skip the test if there is no kwok."""
    return _plane_with(Program.KWOK, "kwok", envtest_programs, request).kwok


def _plane_with(program: Program, what: str, programs: Programs, request: pytest.FixtureRequest) -> ControlPlane:
    if program in programs.missing:
        _skip(f"tests with {what} are skipped: no {program} in {programs.folder} ({programs.origin})")
    plane: ControlPlane = request.getfixturevalue("envtest_plane")  # requested late, so that a skip does not start it
    return plane
