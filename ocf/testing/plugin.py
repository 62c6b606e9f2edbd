"""Fixtures for pytest, for operators' tests.

It is switched on where it is wanted, in the `conftest.py` at the root of the tests::

    pytest_plugins = ["ocf.testing.plugin"]

Every fixture can be overridden in a `conftest.py`, a module or a class, as pytest's own: to have kinds and namespaces
of one's own in the cluster, override `cluster_kinds` and `cluster_namespaces`. The fixtures for a real API server are
those of `ocf.testing.envtest`; they cost nothing until a test asks for one.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest

from ocf.embedded import CustomKind, EmbeddedCluster
from ocf.testing.clock import VirtualClock
from ocf.testing.envtest.fixtures import (
    Envtest,
    RunControllers,
    envtest,
    envtest_cluster,
    envtest_controllers,
    envtest_feature_gates,
    envtest_plane,
    envtest_programs,
    metrics_stub,
    pytest_runtest_makereport,
)
from ocf.testing.goldens import Subject, assert_golden

__all__ = [
    "Envtest",
    "GoldenCheck",
    "RunControllers",
    "clock",
    "cluster",
    "cluster_kinds",
    "cluster_namespaces",
    "envtest",
    "envtest_cluster",
    "envtest_controllers",
    "envtest_feature_gates",
    "envtest_plane",
    "envtest_programs",
    "golden",
    "golden_directory",
    "metrics_stub",
    "pytest_addoption",
    "pytest_runtest_makereport",
    "update_goldens",
]

GoldenCheck: TypeAlias = Callable[[str, Subject], None]
"""What the fixture `golden` gives: compares a resource or a component with a file of `golden_directory`."""

_OPTION = "--ocf-update-goldens"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag that refreshes golden files."""
    group = parser.getgroup("ocf")
    group.addoption(_OPTION, action="store_true", help="write golden files instead of comparing with them")


@pytest.fixture
def clock() -> VirtualClock:
    """Give a clock that stands still until the test moves it."""
    return VirtualClock()


@pytest.fixture
def cluster_kinds() -> Sequence[CustomKind]:
    """Give the kinds of one's own in `cluster`; none, unless overridden."""
    return ()


@pytest.fixture
def cluster_namespaces() -> Sequence[str]:
    """Give the namespaces in `cluster` besides `default` and those of the system; none, unless overridden."""
    return ()


@pytest.fixture
def cluster(
    clock: VirtualClock, cluster_kinds: Sequence[CustomKind], cluster_namespaces: Sequence[str]
) -> EmbeddedCluster:
    """Give an embedded cluster that tells the time by `clock`."""
    return EmbeddedCluster(kinds=cluster_kinds, namespaces=cluster_namespaces, now=clock.now)


@pytest.fixture
def update_goldens(request: pytest.FixtureRequest) -> bool:
    """Tell whether golden files are to be written: whether `--ocf-update-goldens` was given."""
    return bool(request.config.getoption(_OPTION))


@pytest.fixture
def golden_directory(request: pytest.FixtureRequest) -> Path:
    """Give the folder of the golden files: `goldens` beside the test's module, unless overridden."""
    return request.path.parent / "goldens"


@pytest.fixture
def golden(golden_directory: Path, update_goldens: bool) -> GoldenCheck:  # noqa: FBT001 (a fixture)
    """Give the function that compares with a golden file, `golden("web.yaml", component)`."""

    def check(name: str, subject: Subject) -> None:
        __tracebackhide__ = True
        assert_golden(golden_directory / name, subject, update=update_goldens)

    return check
