"""A process with a page: shops on the embedded cluster, served over a socket, and callers with tokens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import ClientResponse, ClientSession, CookieJar

from ocf import component
from ocf.cluster import ServiceAccount, Subresource
from ocf.cluster.client import ApiServerCluster
from ocf.cluster.request_log import Verb
from ocf.component import Component
from ocf.objects import Manifest
from ocf.primitives import configmap, secret
from ocf.runtime.operator import ManagerOptions, Operator, running
from ocf.runtime.page import PageOptions
from ocf.runtime.page.process import Page
from ocf.runtime.rbac import roles
from ocf.testing import operator_cluster
from ocf_server import EmbeddedCluster
from tests.runtime.operator.conftest import DEFINITION, NAMESPACE, SHOPS, Shop, run_test, shop
from tests.support import until

__all__ = ["VALUE", "Process", "processing", "run_test"]

VALUE = "hunter2-of-the-shop"


def components_of(owner: Shop) -> Component:
    """Return a component of a ConfigMap, and of a Secret that no page shows; one that is "broken" raises."""
    if owner.spec.motto == "broken":
        raise RuntimeError(VALUE)
    where = {"namespace": owner.metadata.namespace}
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{owner.metadata.name}-settings", **where},
    }
    access = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{owner.metadata.name}-access", **where}}
    return (
        component.Builder("web", condition_type="WebReady")
        .with_resource(secret.Builder({**access, "stringData": {"password": VALUE}}))
        .with_resource(configmap.Builder({**settings, "data": {"motto": owner.spec.motto}}))
        .build()
    )


@dataclass(frozen=True)
class Process:
    """A running process, and the administrator's way to its cluster."""

    cluster: EmbeddedCluster | ApiServerCluster
    page: Page
    url: str
    group: str = "example.com"
    namespace: str = NAMESPACE

    async def made(self, *manifests: Manifest) -> None:
        """Create owners, and wait until each was reconciled."""
        before = self.page.timeline.count
        for one in manifests:
            await self.cluster.create(one, field_manager="kubectl")
        await until(lambda: self.page.timeline.count >= before + len(manifests))

    async def token(self, account: str, **allowed: Sequence[str]) -> str:
        """Return a token of an account of the namespace, with verbs on resources that it may use there.

        Args:
            allowed: The verbs by resource; of all namespaces for a resource that begins with `all_`.
        """
        spec: dict[str, Any] = {"apiVersion": "v1", "kind": "ServiceAccount"}
        spec["metadata"] = {"name": account, "namespace": self.namespace}
        await self.cluster.apply(spec, field_manager="kubectl")
        for resource, verbs in allowed.items():
            plural = resource.removeprefix("all_")
            group = self.group if plural == "shops" else ""
            kind = "Cluster" if plural != resource else ""
            where = {} if kind else {"namespace": self.namespace}
            name = f"{account}-{self.namespace}-{plural}"
            role = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name, **where}}
            rules = [{"apiGroups": [group], "resources": [plural], "verbs": [*verbs]}]
            await self.cluster.apply({**role, "kind": f"{kind}Role", "rules": rules}, field_manager="kubectl")
            reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": f"{kind}Role", "name": name}
            subjects = [{"kind": "ServiceAccount", "name": account, "namespace": self.namespace}]
            binding = {**role, "kind": f"{kind}RoleBinding", "roleRef": reference, "subjects": subjects}
            await self.cluster.apply(binding, field_manager="kubectl")
        request = {**spec, "spec": {}}
        answer = await self.cluster.create(request, field_manager="kubectl", subresource=Subresource.TOKEN)
        return str(answer["status"]["token"])

    async def get(self, path: str, token: str = "", **headers: str) -> tuple[int, str]:
        """Return the status and the text of an answer."""
        async with self.opened(path, token, **headers) as answer:
            return answer.status, await answer.text()

    @asynccontextmanager
    async def opened(self, path: str, token: str = "", **headers: str) -> AsyncIterator[ClientResponse]:
        """Send a request, as the user of a token."""
        given = {"Authorization": f"Bearer {token}"} if token else {}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with (
            ClientSession(self.url, cookie_jar=CookieJar(unsafe=True)) as session,
            session.get(path, headers={**given, **named}) as answer,
        ):
            yield answer

    def reviews(self) -> Mapping[str, int]:
        """Return how many reviews the cluster has answered, by kind."""
        assert isinstance(self.cluster, EmbeddedCluster)
        kinds = [one.kind for one in self.cluster.requests if one.verb is Verb.CREATE and one.kind.endswith("Review")]
        return {kind: kinds.count(kind) for kind in sorted({*kinds})}


@asynccontextmanager
async def processing(options: PageOptions | None = None, **given: Any) -> AsyncIterator[Process]:
    """Run an operator of shops with the rights of its own roles, and its page."""
    cluster = EmbeddedCluster(namespaces=[NAMESPACE, "village"], authorization=True)
    await cluster.apply(DEFINITION, field_manager="kubectl")
    operator = Operator(name="shops", owner=SHOPS, components=components_of, **given)
    settings = ManagerOptions(listen=None, page=options or PageOptions(port=0))
    example = Shop.model_validate({"metadata": {"name": "example", "namespace": NAMESPACE}})
    rules = operator.policy_rules([components_of(example)]) | settings.policy_rules(operator)
    granted = roles(rules, name="shops", account=ServiceAccount("shops", "operators"))
    own = await operator_cluster(cluster, granted)
    async with running(own, operator, options=settings) as manager:
        await manager.started()
        page = manager.page
        assert page is not None
        assert page.address is not None
        yield Process(cluster, page, page.address.url)


@pytest.fixture
def unserved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no socket, which virtual time cannot wait for; all else of the page is there."""

    @asynccontextmanager
    async def nothing(*_: Any) -> AsyncIterator[None]:
        yield

    monkeypatch.setattr(Page, "serving", nothing)


def broken(name: str) -> Manifest:
    return shop(name, motto="broken")


def elsewhere(name: str) -> Manifest:
    """Return a shop of another namespace."""
    made = shop(name)
    return {**made, "metadata": {**made["metadata"], "namespace": "village"}}
