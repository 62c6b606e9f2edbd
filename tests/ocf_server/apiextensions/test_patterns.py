"""Patterns of schemas are regular expressions of Go, on the embedded server and on a real one."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.errors import InvalidError
from ocf_server import EmbeddedCluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ocf.cluster import Cluster
    from ocf.objects import Manifest
    from ocf.testing.envtest import ControlPlane

GROUP: Final = "patterns.example.com"
ROWS: Final = (
    ("^(?i)(abort|warn)?$", "WARN", True),
    ("^(?i)(abort|warn)?$", "warned", False),
    ("^a$", "a\n", False),
    ("(?m)^a$", "b\na", True),
    ("^\\d$", "\u0663", False),
    ("^\\p{Greek}+$", "\u03b1\u03b2", True),
    ("^\\pL$", "1", False),
    ("^(?P<name>a)\\z", "a", True),
    ("b", "abc", True),
    ("^.$", "\n", False),
)
"""Pattern, value, and whether it matches."""


def definition(name: str, patterns: list[str]) -> Manifest:
    """Return a definition with one field for each pattern."""
    fields = {f"f{index}": {"type": "string", "pattern": pattern} for index, pattern in enumerate(patterns)}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{name}s.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": name.title(), "plural": f"{name}s", "singular": name, "listKind": f"{name.title()}List"},
            "versions": [version],
        },
    }


@pytest.fixture(params=["embedded", "envtest"])
def open_cluster(request: pytest.FixtureRequest) -> Callable[[], AbstractAsyncContextManager[Cluster]]:
    """Return a function that opens a cluster with the definition of all patterns."""
    known = definition("pattern", [pattern for pattern, _, _ in ROWS])

    @asynccontextmanager
    async def embedded() -> AsyncIterator[Cluster]:
        cluster = EmbeddedCluster()
        await cluster.create(known, field_manager="test")
        yield cluster

    if request.param == "embedded":
        return embedded
    plane: ControlPlane = request.getfixturevalue("envtest_plane")
    plane.install_crds(known)

    @asynccontextmanager
    async def real() -> AsyncIterator[Cluster]:
        async with await plane.cluster() as cluster:
            yield cluster

    return real


async def test_a_value_matches_as_go_says(
    open_cluster: Callable[[], AbstractAsyncContextManager[Cluster]],
) -> None:
    verdicts = []
    async with open_cluster() as cluster:
        for index, (pattern, value, _) in enumerate(ROWS):
            metadata = {"name": "one", "namespace": "default"}
            tried: dict[str, Any] = {"apiVersion": f"{GROUP}/v1", "kind": "Pattern", "metadata": metadata}
            try:
                await cluster.create({**tried, "spec": {f"f{index}": value}}, field_manager="test", dry_run=True)
            except InvalidError:
                verdicts.append((pattern, value, False))
            else:
                verdicts.append((pattern, value, True))
    assert verdicts == list(ROWS)


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        pytest.param("^(?=a)b$", "invalid or unsupported Perl syntax: `(?=`", id="lookahead"),
        pytest.param("(a)\\1", "invalid escape sequence: `\\1`", id="backreference"),
        pytest.param("a{1,1001}", "invalid repeat count: `{1,1001}`", id="count"),
        pytest.param("[b-a]", "invalid character class range: `b-a`", id="range"),
    ],
)
async def test_a_pattern_that_go_cannot_read_is_rejected(
    open_cluster: Callable[[], AbstractAsyncContextManager[Cluster]], pattern: str, problem: str
) -> None:
    async with open_cluster() as cluster:
        with pytest.raises(InvalidError) as raised:
            await cluster.create(definition("other", [pattern]), field_manager="test", dry_run=True)
    assert f"must be a valid regular expression, but isn't: error parsing regexp: {problem}" in str(raised.value)
