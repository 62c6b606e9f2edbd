"""Fixtures for pytest around a control plane; `ocf.testing.plugin` hands them on.

The control plane is started once per run and belongs to no event loop: processes only. A client is opened for each
test, in the loop of that test.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

import pytest

from ocf.errors import ConfigError
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
    "envtest",
    "envtest_cluster",
    "envtest_controllers",
    "envtest_feature_gates",
    "envtest_plane",
    "envtest_programs",
    "metrics_stub",
    "pytest_runtest_makereport",
]

REQUIRE: Final = "OCF_REQUIRE"
"""The variable that lists, separated by commas, what tests must not be left out for lack of; `envtest` is one."""

_OURS: Final = "envtest: "  # how a reason to leave a test out begins
_LEFT_OUT: Final = f"tests on a real API server are left out; {REMEDY} brings the programs that they need"
_LONGEST: Final = 40  # characters of a test's name that go into the name of its namespace


@dataclass(frozen=True, slots=True)
class Envtest:
    """A namespace of one test on a control plane that tests share.

    Args:
        plane: The control plane.
        namespace: The test's own namespace.
        kubeconfig: A kubeconfig for the administrator, whose namespace is this one.
    """

    plane: ControlPlane
    namespace: str
    kubeconfig: Path

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl in the namespace.

        Args:
            *arguments: As on its command line.
            stdin: What it reads.

        Returns:
            What it printed.

        Raises:
            ConfigError: If it is not there or fails.
        """
        return self.plane.kubectl(*arguments, stdin=stdin, kubeconfig=self.kubeconfig)


class RunControllers(Protocol):
    """What the fixture `envtest_controllers` gives: runs controllers for the length of a block."""

    def __call__(
        self,
        *names: str,
        hpa_sync_period: timedelta = ...,
        arguments: Mapping[str, str | None] | None = ...,
    ) -> AbstractContextManager[None]:
        """Run them; as `ControlPlane.controllers`."""
        ...


def _leave_out(reason: str) -> NoReturn:
    """Skip a test, or fail it where it must not be skipped."""
    if "envtest" in re.split(r"[,\s]+", os.environ.get(REQUIRE, "")):
        pytest.fail(f"{reason} ({REQUIRE} says that they must run)", pytrace=False)
    pytest.skip(f"{_OURS}{reason}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell one place for all tests that are left out for one reason, so that the summary has one line for them."""
    report = yield
    if isinstance(report.longrepr, tuple) and report.longrepr[2].startswith(f"Skipped: {_OURS}"):
        report.longrepr = (__file__, _leave_out.__code__.co_firstlineno, report.longrepr[2])
    return report


@pytest.fixture(scope="session")
def envtest_programs() -> Programs:
    """Give the programs of a control plane; leave the test out where there are none."""
    try:
        programs, problem = find_programs(), ""
    except ConfigError as error:
        programs, problem = None, str(error)
    if problem:
        pytest.fail(problem, pytrace=False)
    return programs or _leave_out(_LEFT_OUT)


@pytest.fixture(scope="session")
def envtest_feature_gates() -> Mapping[str, bool]:
    """Give the Kubernetes features to switch on or off; none, unless overridden."""
    return {}


@pytest.fixture(scope="session")
def envtest_plane(envtest_programs: Programs, envtest_feature_gates: Mapping[str, bool]) -> Iterator[ControlPlane]:
    """Give the control plane that the tests of a run share."""
    with ControlPlane(envtest_programs, feature_gates=envtest_feature_gates) as plane:
        yield plane


@pytest.fixture
def envtest(envtest_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Envtest]:
    """Give a namespace of the test's own on the control plane."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:_LONGEST].strip("-")
    with envtest_plane.namespace(f"{words or 'test'}-") as namespace:
        kubeconfig = envtest_plane.kubeconfig_for("tester", MASTERS, namespace=namespace)
        yield Envtest(envtest_plane, namespace, kubeconfig)


def _asynchronous(function: Callable[[ControlPlane], AsyncIterator[Any]]) -> object:
    """Make a fixture of a generator: pytest-asyncio's own, which its strict mode wants, else one for other plugins."""
    try:
        from pytest_asyncio import fixture
    except ImportError:
        return pytest.fixture(function)
    return fixture(function)


@_asynchronous
async def envtest_cluster(envtest_plane: ControlPlane) -> AsyncIterator[ApiServerCluster]:
    """Give a client of the control plane, opened in the test's event loop; needs pytest-asyncio or anyio's plugin."""
    async with await envtest_plane.cluster() as cluster:
        yield cluster


@_asynchronous
async def metrics_stub(envtest_plane: ControlPlane) -> AsyncIterator[MetricsStub]:
    """Give a server of metrics behind the control plane; needs pytest-asyncio or anyio's plugin."""
    from ocf.testing.metrics_stub import MetricsStub

    async with MetricsStub(envtest_plane) as stub:
        yield stub


@pytest.fixture
def envtest_controllers(envtest_programs: Programs, request: pytest.FixtureRequest) -> RunControllers:
    """Give `ControlPlane.controllers`; leave the test out where there is no controller manager."""
    if Program.CONTROLLER_MANAGER in envtest_programs.missing:
        where = f"{envtest_programs.folder} ({envtest_programs.origin})"
        _leave_out(f"tests with controllers are left out: no {Program.CONTROLLER_MANAGER} in {where}")
    plane: ControlPlane = request.getfixturevalue("envtest_plane")  # asked for late: it would be started for nothing
    return plane.controllers
