"""Pytest fixtures for the tests of operators.

Enable the plugin in the `conftest.py` at the root of the tests::

    pytest_plugins = ["ocf.testing.plugin"]

Every fixture can be overridden in a `conftest.py`, a module or a class. To add kinds and namespaces to the cluster,
override `cluster_kinds` and `cluster_namespaces`. To test an operator, define `operator` and `owner`, and use
`owner_env`. The fixtures for a real API server come from `ocf.testing.envtest`;
they cost nothing until a test requests one.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.objects.documents import load_documents
from ocf.runtime.operator import Operator
from ocf.testing.async_fixture import async_fixture
from ocf.testing.clock import VirtualClock
from ocf.testing.envtest.fixtures import (
    Envtest,
    RunControllers,
    RunKwok,
    RunScheduler,
    envtest,
    envtest_cluster,
    envtest_controllers,
    envtest_feature_gates,
    envtest_kwok,
    envtest_plane,
    envtest_programs,
    envtest_scheduler,
    metrics_stub,
    pytest_runtest_makereport,
)
from ocf.testing.goldens import Subject, assert_golden
from ocf.testing.operator_cluster import operator_cluster
from ocf.testing.owner_env import OwnerEnv
from ocf_server import ControllerSettings, CustomKind, EmbeddedCluster
from ocf_server.controllers.runner import Controllers

__all__ = [
    "Envtest",
    "GoldenCheck",
    "RunControllers",
    "RunKwok",
    "RunScheduler",
    "clock",
    "cluster",
    "cluster_kinds",
    "cluster_namespaces",
    "controller_settings",
    "controllers",
    "envtest",
    "envtest_cluster",
    "envtest_controllers",
    "envtest_feature_gates",
    "envtest_kwok",
    "envtest_plane",
    "envtest_programs",
    "envtest_scheduler",
    "golden",
    "golden_directory",
    "metrics_stub",
    "operator",
    "operator_roles",
    "other_operators",
    "owner",
    "owner_env",
    "pytest_addoption",
    "pytest_runtest_makereport",
    "update_goldens",
]

GoldenCheck: TypeAlias = Callable[[str, Subject], None]
"""Type of the fixture `golden`: compares a resource or a component with a file in `golden_directory`."""

_OPTION = "--ocf-update-goldens"
_ROLES = "ocf_operator_roles"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag that refreshes golden files, and the setting of the roles."""
    group = parser.getgroup("ocf")
    parser.addini(
        _ROLES, "files with the roles with whose rights owner_env reconciles, from `ocf manifests`", type="paths"
    )
    group.addoption(_OPTION, action="store_true", help="write golden files instead of comparing with them")


@pytest.fixture
def clock() -> VirtualClock:
    """Return a clock that only the test advances."""
    return VirtualClock()


@pytest.fixture
def cluster_kinds() -> Sequence[CustomKind]:
    """Return the custom kinds of `cluster`; none unless overridden."""
    return ()


@pytest.fixture
def cluster_namespaces() -> Sequence[str]:
    """Return the namespaces of `cluster` besides `default` and the system namespaces; none unless overridden."""
    return ()


@pytest.fixture
def operator_roles(pytestconfig: pytest.Config) -> Sequence[Manifest] | None:
    """Return the roles with whose rights `owner_env` reconciles: those of the setting; None without it: all rights."""
    files: list[Path] = pytestconfig.getini(_ROLES)
    return [role for file in files for role in _roles(file)] or None


def _roles(file: Path) -> Sequence[Manifest]:
    try:
        return load_documents(file.read_text(encoding="utf-8"))
    except OSError as error:
        problem = f"{file} cannot be read: {error.strerror or error}"
        raise ConfigError(f"{_ROLES}: {problem}; name the file of roles that `ocf manifests` writes") from error


@pytest.fixture
def cluster(
    clock: VirtualClock,
    cluster_kinds: Sequence[CustomKind],
    cluster_namespaces: Sequence[str],
    operator_roles: Sequence[Manifest] | None,
) -> EmbeddedCluster:
    """Return an embedded cluster that takes its time from `clock`; it authorizes requests if there are roles."""
    return EmbeddedCluster(
        kinds=cluster_kinds,
        namespaces=cluster_namespaces,
        now=clock.now,
        authorization=operator_roles is not None,
    )


@pytest.fixture
def operator() -> Operator[Any]:
    """Return the operator of `owner_env`; has to be overridden."""
    raise ConfigError("owner_env: the fixture `operator` is missing: define one that returns the operator to test")


@pytest.fixture
def other_operators() -> Sequence[Operator[Any]]:
    """Return further operators of `owner_env`, which reconcile their own owners; none unless overridden."""
    return ()


@pytest.fixture
def owner() -> Manifest:
    """Return the owner of `owner_env`, as a user would create it; has to be overridden."""
    raise ConfigError("owner_env: the fixture `owner` is missing: define one that returns the manifest of an owner")


@pytest.fixture
def controller_settings() -> ControllerSettings | None:
    """Return the settings of `controllers`; None, unless overridden: no controller runs."""
    return None


@pytest.fixture
def controllers(cluster: EmbeddedCluster, controller_settings: ControllerSettings | None) -> Controllers | None:
    """Return the built-in controllers of `cluster`, which act when `settle` is awaited; None without settings."""
    return None if controller_settings is None else cluster.controllers(controller_settings)


@async_fixture
async def owner_env(  # noqa: PLR0917 (fixtures)
    operator: Operator[Any],
    owner: Manifest,
    cluster: EmbeddedCluster,
    clock: VirtualClock,
    controllers: Controllers | None,
    other_operators: Sequence[Operator[Any]],
    operator_roles: Sequence[Manifest] | None,
) -> AsyncIterator[OwnerEnv[Any]]:
    """Create the owner and the definitions of the operators in `cluster`; needs pytest-asyncio or anyio's plugin."""
    restricted = None if operator_roles is None else await operator_cluster(cluster, operator_roles)
    yield await OwnerEnv.create(
        operator,
        owner,
        cluster,
        clock,
        controllers=controllers,
        others=other_operators,
        reconciles_with=restricted,
    )


@pytest.fixture
def update_goldens(request: pytest.FixtureRequest) -> bool:
    """Return whether `--ocf-update-goldens` was given, so that golden files are written instead of compared."""
    return bool(request.config.getoption(_OPTION))


@pytest.fixture
def golden_directory(request: pytest.FixtureRequest) -> Path:
    """Return the folder of the golden files: `goldens` beside the test module unless overridden."""
    return request.path.parent / "goldens"


@pytest.fixture
def golden(golden_directory: Path, update_goldens: bool) -> GoldenCheck:  # noqa: FBT001 (a fixture)
    """Return the function that compares with a golden file: `golden("web.yaml", component)`."""

    def check(name: str, subject: Subject) -> None:
        __tracebackhide__ = True
        assert_golden(golden_directory / name, subject, update=update_goldens)

    return check
