"""What a reconcile observes, recorded from its requests."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from ocf.cluster import Cluster, InterceptingCluster, Request, Subresource
from ocf.embedded import EmbeddedCluster
from ocf.errors import ApiError, ConflictError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.operator.observed_versions import ObservedVersions, RecordingReads

OWNER: Final = ObjectKey("example.com/v1", "Shop", "corner", "town")
WEB: Final = ObjectKey("apps/v1", "Deployment", "web", "town")
LABELS: Final = {"app": "web"}
DEPLOYMENT: Final[Manifest] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "town"},
    "spec": {
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "web", "image": "web"}]}},
    },
}
OWNED: Final[Manifest] = {
    **DEPLOYMENT,
    "metadata": {
        **DEPLOYMENT["metadata"],
        "ownerReferences": [
            {"apiVersion": "example.com/v1", "kind": "Shop", "name": "corner", "uid": "1", "controller": True}
        ],
    },
}

READS: Final[dict[str, dict[str, Any]]] = {
    "found": {"key": WEB},
    "absent": {"key": WEB._replace(name="shop")},
    "scale": {"key": WEB, "subresource": Subresource.SCALE},
    "absent scale": {"key": WEB._replace(name="shop"), "subresource": Subresource.SCALE},
    "unknown kind": {"key": WEB._replace(kind="Shop")},
}
APPLIES: Final[dict[str, dict[str, Any]]] = {
    "changed": {"manifest": {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "paused": True}}},
    "unchanged": {"manifest": DEPLOYMENT},
    "owned": {"manifest": OWNED},
    "dry run": {"manifest": {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "paused": True}}, "dry_run": True},
    "status": {
        "manifest": {**DEPLOYMENT, "spec": {}, "status": {"replicas": 1}},
        "subresource": Subresource.STATUS,
        "force": True,
    },
    "scale": {"manifest": {**DEPLOYMENT, "spec": {"replicas": 2}}, "subresource": Subresource.SCALE},
    "without a name": {"manifest": {**DEPLOYMENT, "metadata": {"namespace": "town"}}},
    "without metadata": {"manifest": {"apiVersion": "apps/v1", "kind": "Deployment"}},
    "empty": {"manifest": {}},
}


class Conflicting(InterceptingCluster):
    """A cluster on which every request conflicts."""

    async def intercept(self, request: Request, send: object) -> Any:
        del send
        raise ConflictError(f"conflict of {request.verb}", code=409, reason="Conflict")


def recorded(verb: str, arguments: dict[str, Any], *, whole: bool, conflicting: bool) -> tuple[object, ...]:
    """Send a request, and return what was recorded of it.

    Args:
        verb: Name of the method.
        arguments: Its arguments.
        whole: Whether the request is described in whole, and goes through `intercept`.
        conflicting: Whether the cluster rejects it.
    """

    async def send() -> tuple[object, ...]:
        cluster: Cluster = EmbeddedCluster(namespaces=("town",))
        await cluster.apply(DEPLOYMENT, field_manager="me")
        observed, followed = ObservedVersions(OWNER), list[tuple[str, str, str]]()
        reads = RecordingReads(
            Conflicting(cluster) if conflicting else cluster, observed, lambda *kind: followed.append(kind)
        )
        call = getattr(InterceptingCluster if whole else RecordingReads, verb)
        try:
            live = await call(reads, **arguments)
        except ApiError as error:
            answer: object = (type(error), str(error))
        else:
            answer = ObjectKey.of(live)
        state = (observed.versions, observed.requested, observed.superseded, observed.uncontrolled)
        return (answer, followed, *state)

    return asyncio.run(send())


@pytest.mark.parametrize("conflicting", [False, True])
@pytest.mark.parametrize("case", READS)
def test_a_read_is_recorded_as_any_other_request(case: str, conflicting: bool) -> None:
    direct = recorded("get", READS[case], whole=False, conflicting=conflicting)
    assert direct == recorded("get", READS[case], whole=True, conflicting=conflicting)


@pytest.mark.parametrize("conflicting", [False, True])
@pytest.mark.parametrize("case", APPLIES)
def test_an_apply_is_recorded_as_any_other_request(case: str, conflicting: bool) -> None:
    arguments = {"field_manager": "me", **APPLIES[case]}
    direct = recorded("apply", arguments, whole=False, conflicting=conflicting)
    assert direct == recorded("apply", arguments, whole=True, conflicting=conflicting)
