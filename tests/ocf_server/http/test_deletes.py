"""Responses to deletes, on the embedded server and on a real one: an object as its delete stored it, or a Status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from tests.ocf_server.http.conftest import Either

FOREGROUND: Final = "?propagationPolicy=Foreground"
ORPHAN: Final = "?propagationPolicy=Orphan"


def shown(reply: Any) -> tuple[str, list[str], bool]:
    """Return the kind of a response, the finalizers in it, and whether the object is being deleted."""
    metadata = reply["metadata"]
    return reply["kind"], metadata.get("finalizers", []), "deletionTimestamp" in metadata


@pytest.mark.parametrize(
    ("query", "finalizers"),
    [
        pytest.param("", [], id="background"),
        pytest.param(FOREGROUND, ["foregroundDeletion"], id="foreground"),
        pytest.param(ORPHAN, ["orphan"], id="orphan"),
    ],
)
async def test_a_namespace_is_returned_with_its_contents_to_be_deleted(
    either: Either, query: str, finalizers: list[str]
) -> None:
    reply = await either.ask("DELETE", f"{either.path}{query}")
    assert reply.status == 200
    assert shown(reply.json) == ("Namespace", finalizers, True)
    assert (reply.json["spec"], reply.json["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Terminating"})


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", ("Status", [], False), id="background"),
        pytest.param(FOREGROUND, ("ConfigMap", ["foregroundDeletion"], True), id="foreground"),
        pytest.param(ORPHAN, ("ConfigMap", ["orphan"], True), id="orphan"),
    ],
)
async def test_an_object_that_waits_for_the_garbage_collector_is_returned(
    either: Either, query: str, expected: tuple[str, list[str], bool]
) -> None:
    assert (await either.ask("POST", f"{either.path}/configmaps", {"metadata": {"name": "a"}})).status == 201
    reply = await either.ask("DELETE", f"{either.path}/configmaps/a{query}")
    assert (reply.status, shown(reply.json)) == (200, expected)


@pytest.mark.parametrize(
    ("node", "queries"),
    [
        pytest.param(None, [""], id="without a node"),
        pytest.param("node", ["?gracePeriodSeconds=0"], id="on a node, at once"),
        pytest.param("node", ["?gracePeriodSeconds=20", "?gracePeriodSeconds=0"], id="on a node, then at once"),
    ],
)
async def test_a_pod_is_returned_as_its_delete_ended_it(either: Either, node: str | None, queries: list[str]) -> None:
    await either.ask("POST", f"{either.path}/serviceaccounts", {"metadata": {"name": "default"}})
    spec = {"automountServiceAccountToken": False, "containers": [{"name": "web", "image": "web"}]}
    pod = {"metadata": {"name": "web"}, "spec": {**spec, **({"nodeName": node} if node else {})}}
    assert (await either.ask("POST", f"{either.path}/pods", pod)).status == 201
    replies = [(await either.ask("DELETE", f"{either.path}/pods/web{query}")).json for query in queries]
    assert [(shown(reply), reply["metadata"]["generation"]) for reply in replies] == [
        (("Pod", [], True), 2) for _ in queries
    ]
    assert replies[-1]["metadata"]["deletionGracePeriodSeconds"] == 0
    assert (await either.ask("GET", f"{either.path}/pods/web")).status == 404
