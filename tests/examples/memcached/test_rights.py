"""On a real API server the operator needs exactly the policy rules that it ships with."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from examples.memcached import monitor
from examples.memcached.admission import webhooks
from examples.memcached.model import Memcached
from examples.memcached.operator import NAME, memcached_operator
from examples.memcached.samples import EVERYTHING
from ocf.cluster import InterceptingCluster, ListOptions, PatchOptions, PatchType, Request, ServiceAccount
from ocf.concepts import SystemClock
from ocf.errors import ForbiddenError, NotFoundError, ServerError
from ocf.objects import Manifest, ObjectKey, load_document
from ocf.objects.documents import load_documents
from ocf.runtime.admission import SecretCertificates, Url, configurations, serving
from ocf.runtime.operator import Lease, ManagerOptions, running
from ocf.runtime.rbac import PolicyRule
from ocf.testing.envtest import ControlPlane
from tests.examples.memcached.env import served
from tests.support import eventually, until_granted

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.envtest.binaries import Programs

ACCOUNT: Final = ServiceAccount(NAME, NAME)
USER: Final = f"system:serviceaccount:{ACCOUNT.namespace}:{ACCOUNT.name}"
HOST: Final = "127.0.0.1"
BASE: Final = Path(__file__).parents[3] / "examples" / "memcached" / "deploy" / "base"
GRANTED: Final = load_documents((BASE / "roles.yaml").read_text(encoding="utf-8"))
ROLES: Final = [one for one in GRANTED if one["kind"] in {"ClusterRole", "Role"}]
RULES: Final = [(number, index) for number, role in enumerate(ROLES) for index in range(len(role["rules"]))]
MADE: Final = (
    ("apps/v1", "Deployment"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("v1", "Service"),
    ("policy/v1", "PodDisruptionBudget"),
    ("monitoring.coreos.com/v1", "ServiceMonitor"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
)
OPTIONAL: Final = [kind for kind in MADE if kind[1] not in {"Deployment", "Service"}]
OFF: Final = {
    "autoscaling": {"enabled": False},
    "monitoring": {"serviceMonitor": None},
    "highAvailability": {"podDisruptionBudget": {"enabled": False}},
    "security": {"networkPolicy": {"enabled": False}},
}
RENEWAL: Final = timedelta(days=70)


class Noting(InterceptingCluster):
    """A cluster that notes what is forbidden."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.refusals: list[str] = []

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await super().intercept(request, send)
        except ForbiddenError as error:
            self.refusals.append(str(error))
            raise


class Later(SystemClock):
    """A clock that shows an instant at which the certificate has to be renewed."""

    def now(self) -> datetime:
        return datetime.now(UTC) + RENEWAL


@dataclass
class Life:
    """The life of a cache, with everything in it."""

    admin: ApiServerCluster
    account: Noting
    namespace: str

    async def live(self) -> list[str]:
        """Go through it, up to the first thing that is forbidden; return what was."""
        with suppress(ForbiddenError):
            async with asyncio.timeout(600), self.operating():
                await self.steps()
        with suppress(ForbiddenError):
            if not self.account.refusals:
                await self.certificates(Later()).refresh()
        return self.account.refusals

    async def steps(self) -> None:
        await self.until(self.all_are_there)
        await self.change(image="memcached:1.6.30")
        await self.until(lambda: self.runs("memcached:1.6.30"))
        await self.change(**OFF)
        await self.until(self.optional_ones_are_gone)
        await self.change(suspended=True)
        await self.until(self.is_suspended)

    @asynccontextmanager
    async def operating(self) -> AsyncIterator[None]:
        """Have the operator work as its program does; API servers find its webhooks by URL, for there is no network."""
        async with AsyncExitStack() as stack:
            webhook_server = serving(webhooks(), certificates=self.certificates(), host=HOST, port=0)
            server = await stack.enter_async_context(webhook_server)
            for one in configurations(webhooks(), Url(server.url)):
                await self.admin.create(one, field_manager="admin")
            await server.refresh()
            self.demand_rights()
            await self.birth()
            options = ManagerOptions(listen=None, lease=Lease(NAME, ACCOUNT.namespace))
            await stack.enter_async_context(running(self.account, memcached_operator, options=options))
            await self.until(self.is_led)
            yield

    def certificates(self, clock: SystemClock | None = None) -> SecretCertificates:
        url = Url(f"https://{HOST}")
        return SecretCertificates(self.account, webhooks(), url, namespace=ACCOUNT.namespace, clock=clock)

    def demand_rights(self) -> None:
        if self.account.refusals:
            raise ForbiddenError(self.account.refusals[0])

    async def birth(self) -> None:
        for name in ("my-cache-sasl", "my-cache-tls"):
            metadata = {"name": name, "namespace": self.namespace}
            secret = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": metadata,
                "stringData": {"password-file": "a:b"},
            }
            await self.admin.create(secret, field_manager="admin")
        cache = load_document(EVERYTHING)
        cache["metadata"]["namespace"] = self.namespace
        # The API server answers 500 as long as it knows the webhooks without their CA.
        await eventually(lambda: self.admin.create(cache, field_manager="admin"), ignore=(ServerError,))

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Wait for the operator, or for a forbidden request."""
        while not await holds():
            self.demand_rights()
            await asyncio.sleep(0.02)
        self.demand_rights()

    def key(self, api_version: str, kind: str) -> ObjectKey:
        return ObjectKey(api_version, kind, "my-cache", self.namespace)

    async def found(self, api_version: str, kind: str) -> Manifest | None:
        try:
            return await self.admin.get(self.key(api_version, kind))
        except NotFoundError:
            return None

    async def change(self, **spec: Any) -> None:
        key = self.key("memcached.c5c3.io/v1alpha1", "Memcached")
        await self.admin.patch(key, {"spec": spec}, PatchOptions(patch_type=PatchType.MERGE, field_manager="admin"))

    async def is_led(self) -> bool:
        try:
            lease = await self.admin.get(ObjectKey("coordination.k8s.io/v1", "Lease", NAME, ACCOUNT.namespace))
        except NotFoundError:
            return False
        return bool(lease["spec"].get("holderIdentity"))

    async def all_are_there(self) -> bool:
        cache = await self.found("memcached.c5c3.io/v1alpha1", "Memcached")
        events = await self.admin.list("events.k8s.io/v1", "Event", ListOptions(namespace=self.namespace))
        made = [await self.found(*kind) for kind in MADE]
        return None not in made and bool(cache and cache.get("status")) and bool(events.items)

    async def runs(self, image: str) -> bool:
        live = await self.found("apps/v1", "Deployment")
        return bool(live and live["spec"]["template"]["spec"]["containers"][0]["image"] == image)

    async def optional_ones_are_gone(self) -> bool:
        return all([await self.found(*kind) is None for kind in OPTIONAL])

    async def is_suspended(self) -> bool:
        live = await self.found("apps/v1", "Deployment")
        return bool(live and live["spec"]["replicas"] == 0)


@pytest.fixture(scope="module")
def plane(envtest_programs: Programs) -> Iterator[ControlPlane]:
    """Give a control plane of its own, because the operator works everywhere on it."""
    with ControlPlane(envtest_programs) as found:
        yield found


@pytest.fixture
async def admin(plane: ControlPlane) -> AsyncIterator[ApiServerCluster]:
    async with await plane.cluster() as cluster:
        for one in (Memcached.definition(), monitor.DEFINITION, *GRANTED):
            if one["metadata"].get("namespace"):
                await cluster.apply(namespace(one["metadata"]["namespace"]), field_manager="admin")
            await cluster.apply(one, field_manager="admin", force=True)
        kinds = [("memcached.c5c3.io/v1alpha1", "Memcached"), ("monitoring.coreos.com/v1", "ServiceMonitor")]
        await served(cluster, *kinds)
        yield cluster


def namespace(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


async def lived(admin: ApiServerCluster, plane: ControlPlane) -> list[str]:
    """Live a life in a namespace of its own, and leave nothing behind that the next one would find."""
    kubeconfig = await asyncio.to_thread(plane.kubeconfig_for, USER, "system:serviceaccounts")
    with plane.namespace("rights-") as name:
        async with await plane.cluster(kubeconfig) as account:
            life = Life(admin, Noting(account), name)
            try:
                return await life.live()
            finally:
                await tidy(admin, life)


async def tidy(admin: ApiServerCluster, life: Life) -> None:
    certificates = f"{NAME}-webhook-certificates"
    for key in (
        life.key("memcached.c5c3.io/v1alpha1", "Memcached"),
        *(ObjectKey.of(one) for one in configurations(webhooks(), Url("https://x"))),
        ObjectKey("coordination.k8s.io/v1", "Lease", NAME, ACCOUNT.namespace),
        ObjectKey("v1", "Secret", certificates, ACCOUNT.namespace),
    ):
        with suppress(NotFoundError):
            await admin.delete(key)


async def known(admin: ApiServerCluster, role: Manifest, rule: Manifest, *, allowed: bool) -> None:
    """Wait until a change of a role is in effect, which the server does not announce."""
    (group,), (verb, *_) = rule["apiGroups"], reversed(rule["verbs"])
    (name,), namespace = rule.get("resourceNames", [""])[:1], role["metadata"].get("namespace", "")
    changed = PolicyRule(group, rule["resources"][-1], verb, name=name, namespace=namespace)
    await until_granted(admin, USER, [changed], groups=["system:serviceaccounts"], granted=allowed)


@pytest.mark.promise("rights", runs="the life of a cache with everything in it, on a real API server")
async def test_no_request_is_forbidden(admin: ApiServerCluster, plane: ControlPlane) -> None:
    for role in ROLES:
        await known(admin, role, role["rules"][-1], allowed=True)

    assert await lived(admin, plane) == []


@pytest.mark.parametrize(
    ("number", "index"),
    [
        pytest.param(
            number, index, id=", ".join(ROLES[number]["rules"][index]["resources"]) + f" of {ROLES[number]['kind']}"
        )
        for number, index in RULES
    ],
)
@pytest.mark.promise("rights", runs="the life of a cache on a real API server, once for each of 15 rules")
async def test_each_rule_is_needed(admin: ApiServerCluster, plane: ControlPlane, number: int, index: int) -> None:
    role = copy.deepcopy(ROLES[number])
    rule = role["rules"].pop(index)
    await admin.apply(role, field_manager="admin", force=True)
    await known(admin, role, rule, allowed=False)
    try:
        assert await lived(admin, plane)
    finally:
        await admin.apply(ROLES[number], field_manager="admin", force=True)
        await known(admin, role, rule, allowed=True)
