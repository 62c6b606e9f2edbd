"""Webhooks of kinds that are built in, on an embedded and on a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest
from kubernetes.client import V1ConfigMap, V1Pod

from ocf.cluster import Cluster, ListOptions, Subresource
from ocf.errors import ApiError, ConflictError, ForbiddenError, ServerError, StatusCause, TooManyRequestsError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.admission import (
    AdmissionRequest,
    AuditAnnotation,
    Deny,
    Match,
    Operation,
    Service,
    Url,
    Warn,
    Webhook,
    Webhooks,
    configurations,
    forbidden,
)
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, WebhookOptions, running
from ocf.testing import serve_webhooks
from ocf_server import EmbeddedCluster
from tests.support import eventually

if TYPE_CHECKING:
    from ocf.testing.envtest.fixtures import Envtest

GUARDED: Final = {"matchLabels": {"guarded": "yes"}}
CHANGES: Final = Match(operations=[Operation.CREATE, Operation.UPDATE, Operation.DELETE], objects=GUARDED)
PARTS: Final = Match(
    operations=[Operation.CREATE, Operation.UPDATE], subresources=["eviction", "ephemeralcontainers", "status"]
)


@dataclass
class Guard:
    """The API server, and what its webhooks were asked."""

    cluster: Cluster
    namespace: str
    seen: list[tuple[str, str, bool]] = field(default_factory=list)

    def stamp(self, request: AdmissionRequest[V1ConfigMap]) -> Manifest | Deny | None:
        if request.name == "refused":
            return Deny("the tenant is cordoned")
        data = {"by": request.user.username, "groups": " ".join(request.user.groups)}
        return None if request.object is None else {**request.object, "data": data}

    async def check(self, request: AdmissionRequest[V1ConfigMap], cluster: Cluster) -> list[Any]:
        self.seen.append((request.name, request.operation, request.dry_run))
        if request.name == "counted-too":
            others = await cluster.list("v1", "ConfigMap", ListOptions(namespace=request.namespace))
            names = [one["metadata"]["name"] for one in others.items]
            return [Deny("one is enough", 409)] if "counted" in names else []
        if request.name == "denied":
            return [Deny("not yours", 403, [forbidden("data", "is not yours"), StatusCause("Tenant", "web", "")])]
        return [Warn("be careful"), AuditAnnotation("tenant", "web")]

    async def never(self, _: AdmissionRequest[V1ConfigMap]) -> Deny:
        return Deny("by a condition")

    def part(self, request: AdmissionRequest[V1Pod]) -> Deny | None:
        self.seen.append((request.name, request.subresource, request.dry_run))
        if request.subresource == "eviction":
            assert request.object is not None
            return Deny(f"an {request.object['kind']} of {request.name}", 429)
        return Deny("no debugging") if request.subresource == "ephemeralcontainers" else None

    @property
    def webhooks(self) -> list[Webhook[Any]]:
        conditions = {"by-name": "request.name == 'conditioned'"}
        here = {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}}
        return [
            Webhook.of(V1ConfigMap, mutating=[self.stamp], name="stamp", match=Match(objects=GUARDED)),
            Webhook.of(V1ConfigMap, validating=[self.check], name="check", match=CHANGES, side_effects=True),
            Webhook.of(
                V1ConfigMap, validating=[self.never], name="never", match=Match(objects=GUARDED, conditions=conditions)
            ),
            Webhook.of(
                V1Pod,
                validating=[self.part],
                match=Match(operations=PARTS.operations, subresources=PARTS.subresources, namespaces=here),
            ),
        ]

    def config(self, name: str, *, namespace: str = "", guarded: str = "yes") -> Manifest:
        metadata = {"name": name, "namespace": namespace or self.namespace, "labels": {"guarded": guarded}}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}

    async def refusal(self, manifest: Manifest, **options: Any) -> ApiError:
        with pytest.raises(ApiError) as refused:
            await self.cluster.create(manifest, field_manager="me", **options)
        return refused.value

    async def is_called(self) -> bool:
        """Return whether all webhooks are called; a real API server reads each configuration by itself."""
        for name in ("refused", "denied", "conditioned"):
            try:
                await self.cluster.create(self.config(name), field_manager="me", dry_run=True)
            except ForbiddenError:
                continue
            except (ApiError, TooManyRequestsError):
                return False
            return False
        return True


@pytest.fixture(params=["embedded", "envtest"])
async def guard(request: pytest.FixtureRequest) -> AsyncIterator[Guard]:
    if request.param == "embedded":
        one = Guard(EmbeddedCluster(), "default")
        async with serve_webhooks(one.cluster, "guarding", one.webhooks):
            yield one
        return
    envtest: Envtest = request.getfixturevalue("envtest")
    async with await envtest.plane.cluster() as cluster:
        one = Guard(cluster, envtest.namespace)
        async with serve_webhooks(cluster, "guarding", one.webhooks):
            await eventually(one.is_called)
            one.seen.clear()
            yield one


async def test_several_webhooks_of_a_kind_are_called(guard: Guard) -> None:
    """In controller-runtime the second one needs a path by hand: https://github.com/kubernetes-sigs/controller-runtime/issues/483."""
    stored = await guard.cluster.create(guard.config("a"), field_manager="me")
    assert "system:masters" in stored["data"]["groups"]
    assert stored["data"]["by"]
    assert guard.seen == [("a", "CREATE", False)]


async def test_the_user_is_the_one_as_whom_the_request_is_made(guard: Guard) -> None:
    # A real API server authorizes the request, too.
    alice = guard.cluster.acting_as("alice", groups=["system:masters", "team-web"])
    stored = await alice.create(guard.config("a"), field_manager="me", dry_run=True)
    assert stored["data"]["by"] == "alice"
    assert {"system:masters", "team-web", "system:authenticated"} <= set(stored["data"]["groups"].split())


async def test_a_rejection_arrives_with_its_code_and_causes(guard: Guard) -> None:
    denied = await guard.refusal(guard.config("denied"))
    assert isinstance(denied, ForbiddenError)
    assert denied.message == 'admission webhook "validate.check.configmaps.core.k8s.io" denied the request: not yours'
    assert [(one.reason, one.message, one.field) for one in denied.causes] == [
        ("FieldValueForbidden", "Forbidden: is not yours", "data"),
        ("Tenant", "web", ""),
    ]
    refused = await guard.refusal(guard.config("refused"))
    assert refused.message == (
        'admission webhook "default.stamp.configmaps.core.k8s.io" denied the request: the tenant is cordoned'
    )
    conditioned = await guard.refusal(guard.config("conditioned"))
    assert conditioned.message.endswith("denied the request: by a condition")


@pytest.mark.promise("webhook-dry-run", runs="an embedded and a real API server")
async def test_it_sees_other_objects_and_a_dry_run(guard: Guard) -> None:
    """Webhooks that do not say that they have no side effects reject each dry run.

    https://github.com/knative/pkg/issues/936, https://github.com/actions/actions-runner-controller/issues/266
    """
    await guard.cluster.create(guard.config("counted"), field_manager="me", dry_run=True)
    await guard.cluster.create(guard.config("counted"), field_manager="me")
    assert isinstance(await guard.refusal(guard.config("counted-too"), dry_run=True), ConflictError)
    await guard.cluster.delete(ObjectKey("v1", "ConfigMap", "counted", guard.namespace))
    assert guard.seen[:3] == [
        ("counted", "CREATE", True),
        ("counted", "CREATE", False),
        ("counted-too", "CREATE", True),
    ]
    assert guard.seen[-1] == ("counted", "DELETE", False)


async def test_namespaces_of_the_system_and_other_objects_are_left_alone(guard: Guard) -> None:
    await guard.cluster.create(guard.config("denied", guarded="no"), field_manager="me", dry_run=True)
    for namespace in ("kube-system", "kube-public"):
        await guard.cluster.create(guard.config("denied", namespace=namespace), field_manager="me", dry_run=True)
    assert guard.seen == []


async def test_subresources_reach_it_as_the_match_says(guard: Guard) -> None:
    """Ephemeral containers and evictions: https://github.com/kubernetes/kubernetes/issues/92557.

    https://github.com/kubernetes/kubernetes/issues/110169 has an object selector, which an Eviction never matches.
    """
    spec = {"containers": [{"name": "web", "image": "web:1"}]}
    metadata = {"name": "web", "namespace": guard.namespace}
    pod = await guard.cluster.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, field_manager="me"
    )

    async def evict() -> str:
        with pytest.raises(TooManyRequestsError) as refused:
            await guard.cluster.create(pod, field_manager="me", subresource=Subresource.EVICTION)
        return refused.value.message

    assert (await evict()).endswith("denied the request: an Eviction of web")
    debugged = {**pod, "spec": {**pod["spec"], "ephemeralContainers": [{"name": "debug", "image": "sh:1"}]}}
    with pytest.raises(ForbiddenError, match="no debugging"):
        await guard.cluster.update(debugged, field_manager="me", subresource=Subresource.EPHEMERAL_CONTAINERS)
    status = {**pod, "status": {**pod["status"], "message": "fine"}}
    await guard.cluster.update(status, field_manager="me", subresource=Subresource.STATUS)
    assert [one[1] for one in guard.seen] == ["eviction", "ephemeralcontainers", "status"]


@pytest.fixture(params=["embedded", "envtest"])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Cluster, str]]:
    if request.param == "embedded":
        yield EmbeddedCluster(namespaces=["ops"]), "default"
        return
    envtest: Envtest = request.getfixturevalue("envtest")
    async with await envtest.plane.cluster() as cluster:
        yield cluster, envtest.namespace


def template(namespace: str) -> Manifest:
    """Return an object of a kind that no other test guards: a real API server may call a webhook for a while longer."""
    pod = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    metadata = {"name": "web", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ReplicationController", "metadata": metadata, "spec": {"template": pod}}


def allow(_: AdmissionRequest[Any]) -> None:
    """Allow each request."""


@pytest.mark.promise("webhook-namespaces", runs="an embedded and a real API server, while no process responds")
async def test_what_kubernetes_and_the_operator_need_is_created_while_it_is_down(place: tuple[Cluster, str]) -> None:
    """https://github.com/netbirdio/kubernetes-operator/issues/168, https://github.com/cozystack/cozystack/issues/3125."""
    cluster, operators = place
    controllers: Webhook[Any] = Webhook(
        "", "v1", "ReplicationController", "replicationcontrollers", validating=[allow], timeout=timedelta(seconds=1)
    )
    (down,) = configurations(Webhooks("down", [controllers]), Service("nothing", operators))
    await cluster.create(down, field_manager="me")

    async def fails() -> bool:
        try:
            await cluster.create(template("guarded-while-down"), field_manager="me")
        except ServerError as error:
            return "failed calling webhook" in error.message
        return False

    try:
        await cluster.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "guarded-while-down"}}, field_manager="me"
        )
        await eventually(fails)
        for namespace in ("kube-system", operators):
            await cluster.create(template(namespace), field_manager="me", dry_run=True)
    finally:
        await cluster.delete(ObjectKey.of(down))


async def test_the_process_registers_what_is_declared() -> None:
    cluster = EmbeddedCluster(namespaces=["shop"])
    seen: list[str] = []

    async def check(request: AdmissionRequest[V1ConfigMap], _: Cluster) -> None:
        seen.append(request.namespace)

    operator: Operator[Manifest] = Operator(
        name="guard",
        owner=OwnerType("v1", "Namespace"),
        components=lambda _: (),
        webhooks=[
            Webhook.of(V1ConfigMap, validating=[check], name="one"),
            Webhook.of(V1ConfigMap, validating=[check], name="two", match=Match(everywhere=True)),
        ],
    )
    admission = WebhookOptions(
        address=Url("https://127.0.0.1"), namespace="default", host="127.0.0.1", port=0, register=True
    )
    options = ManagerOptions(listen=None, admission=admission)
    async with running(cluster, operator, options=options) as process:
        await process.started()
        for namespace in ("shop", "default", "kube-system"):
            metadata = {"name": "a", "namespace": namespace}
            await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, field_manager="me")
    assert seen == ["shop", "shop", "default", "kube-system"]
    assert [rule.name for rule in options.policy_rules(operator) if rule.verb == "delete"] == ["guard"]


async def test_it_is_called_again_after_another_has_changed_the_object(place: tuple[Cluster, str]) -> None:
    """Injectors that are called once miss what another one has added: https://github.com/istio/istio/pull/45233."""
    cluster, namespace = place
    called: list[str] = []

    def first(request: AdmissionRequest[Manifest]) -> Manifest:
        called.append("first")
        return {**request.new, "secrets": [{"name": "first"}, *(request.new.get("secrets") or [])[1:]]}

    def second(request: AdmissionRequest[Manifest]) -> Manifest:
        called.append("second")
        return {**request.new, "secrets": [*(request.new.get("secrets") or []), {"name": "second"}]}

    kind = ("", "v1", "ServiceAccount", "serviceaccounts")
    here = Match(operations=[Operation.CREATE], namespaces={"matchLabels": {"kubernetes.io/metadata.name": namespace}})
    webhooks: list[Webhook[Manifest]] = [
        Webhook(*kind, mutating=[first], name="a", match=here, reinvoke=True),
        Webhook(*kind, mutating=[second], name="b", match=here),
    ]
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "web", "namespace": namespace}}
    async with serve_webhooks(cluster, "reinvoked", webhooks):

        async def secrets() -> Any:
            called.clear()
            return (await cluster.create(account, field_manager="me", dry_run=True)).get("secrets")

        assert await eventually(secrets) == [{"name": "first"}, {"name": "second"}]
        assert called == ["first", "second", "first"]
