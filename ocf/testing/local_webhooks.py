"""Webhooks of operators on an embedded cluster, without a server: the cluster calls their functions in this process.

They are installed by the configurations that `ocf manifests` writes. The embedded cluster evaluates the rules,
selectors, match conditions, failure policies and time limits of these, as a real API server does. Only the connection
and its certificate are left out.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final, TypeVar

from ocf.cluster import Cluster, Request, Subresource, Verb
from ocf.cluster.interceptor import wrapped_clusters
from ocf.errors import BuildError, ConfigError
from ocf.objects import Manifest
from ocf.runtime.admission import Service
from ocf.runtime.admission.policies import apply_policies
from ocf.runtime.admission.routes import Route, routes
from ocf.runtime.operator import Operator, WebhookOptions
from ocf.testing.fault_cluster import Injection
from ocf.testing.faults import Fault, SlowWebhook, UnreachedWebhook, WebhookEffect, WebhookResponse
from ocf.testing.virtual_time import VirtualLoop
from ocf_server import EmbeddedCluster
from ocf_server.api.webhook_client import HttpAdmissionClient, UnansweredError

__all__ = ["LocalWebhooks", "can_call_webhooks"]

T = TypeVar("T")

_MANAGER: Final = "test"
_VERBS: Final = {"CREATE": Verb.CREATE, "UPDATE": Verb.UPDATE, "DELETE": Verb.DELETE, "CONNECT": Verb.CREATE}
_TOO_LATE: Final = "context deadline exceeded"


class LocalWebhooks:
    """Webhooks of operators that an embedded cluster calls in this process, also in virtual time.

    `install` creates them. Plain functions are called at once, not in threads. A coroutine function that is still
    waiting at its time limit is cancelled, as in a running operator; in `run_in_virtual_time` no time passes meanwhile.
    Functions of `(request, cluster)` get the cluster itself, without a cache.

    Attributes:
        calls: The calls of webhooks, oldest first; a write that two webhooks guard is two calls.
        injected: The injected faults, oldest first.

    Example:
        >>> from kubernetes.client import V1ConfigMap
        >>> from ocf.errors import ForbiddenError
        >>> from ocf.runtime.admission import Deny, Webhook
        >>> from ocf.runtime.operator import OwnerType
        >>> def guard(request):
        ...     return Deny(f"{request.name} is guarded")
        >>> settings = Operator(
        ...     name="settings",
        ...     owner=OwnerType("v1", "ConfigMap"),
        ...     components=lambda owner: (),
        ...     webhooks=[Webhook.of(V1ConfigMap, validating=[guard])],
        ... )
        >>> async def denied() -> str:
        ...     cluster = EmbeddedCluster()
        ...     await LocalWebhooks.install(cluster, settings)
        ...     metadata = {"name": "limits", "namespace": "default"}
        ...     try:
        ...         manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        ...         await cluster.create(manifest, field_manager="user")
        ...     except ForbiddenError as error:
        ...         return str(error).partition("denied the request: ")[2]
        >>> asyncio.run(denied())
        'limits is guarded'
    """

    def __init__(self, routes: Mapping[str, Route], service: Service, cluster: Cluster) -> None:
        self._routes = dict(routes)
        self._service = service
        self._cluster = cluster
        self._faults: list[Fault] = []
        self._counts: list[int] = []
        self.calls: Final[list[Request]] = []
        self.injected: Final[list[Injection]] = []

    @staticmethod
    async def install(cluster: Cluster, *operators: Operator[Any], namespace: str = "") -> LocalWebhooks:
        """Apply the configurations of the webhooks, and call the webhooks in this process; apply the policies, too.

        Args:
            cluster: An embedded cluster, or a wrapper of one. Where its `admission` is a client of your own, that
                client has to call them.
            operators: The operators of a process, of which at least one has webhooks or admission policies.
            namespace: Namespace of the process, which webhooks and policies of built-in kinds leave out; empty for that
                which `ocf manifests` takes, the name of the first operator.

        Raises:
            ConfigError: If the cluster is not an embedded one, or calls webhooks by a client of its own, or no operator
                has webhooks or policies.
            InvalidError: If a configuration or a policy is invalid, because of a selector or an expression.
        """
        client = _client_of(cluster)
        name = operators[0].name if operators else ""
        service = Service(name, namespace or name)
        options = WebhookOptions(address=service)
        webhooks = options.webhooks(operators)
        if client is None:
            raise ConfigError(
                "webhooks are called in this process by an EmbeddedCluster without an admission client of its own; "
                "a real API server calls those of serve_webhooks"
            )
        policies = [policy for operator in operators for policy in operator.policies]
        if webhooks is None and not policies:
            raise ConfigError(f"{name or 'no operator'} has no webhooks and no admission policies")
        for manifest in (*options.definitions(*operators), *options.configurations(*operators)):
            await cluster.apply(manifest, field_manager=_MANAGER, force=True)
        await apply_policies(cluster, policies, namespace=service.namespace, field_manager=_MANAGER)
        local = LocalWebhooks({} if webhooks is None else routes(webhooks), service, cluster)
        client.connect(service.namespace, service.name, local)
        return local

    def inject(self, *faults: Fault) -> None:
        """Inject faults into later calls, in place of those injected before; without any, the webhooks work again.

        Args:
            faults: Faults of webhooks, such as `ocf.testing.faults.webhook_down`; each counts the calls from now on.

        Raises:
            BuildError: If one is a fault of a cluster, see `FaultyCluster`.
        """
        others = [fault for fault in faults if not isinstance(fault.effect, WebhookEffect)]
        if others:
            raise BuildError([f"{type(one.effect).__name__} is for FaultyCluster, not for webhooks" for one in others])
        self._faults, self._counts = [*faults], [0] * len(faults)

    async def ask(self, webhook: Mapping[str, Any], review: Manifest, *, seconds: float) -> Any:
        """Answer a call of the API server; `UnansweredError` if a fault keeps it from being answered."""
        path = webhook["clientConfig"]["service"].get("path", "/")
        url = f"https://{self._service.host}:{self._service.port}{path}?timeout={seconds:g}s"
        call = _call_of(review)
        self.calls.append(call)
        for fault in self._due(call):
            self.injected.append(Injection(fault, call))
            match fault.effect:
                case UnreachedWebhook(problem):
                    raise _unreached(url, problem)
                case SlowWebhook(delay):
                    seconds = await _delayed(url, delay, seconds)
                case WebhookResponse(body, status):
                    return _read(body, status)
                case _:
                    pass
        route = self._routes.get(path)
        if route is None:
            return _read(f"there is no webhook at {path}\n", 404)
        try:
            async with asyncio.timeout(seconds):
                answer = await self._answered(route, review, webhook)
        except TimeoutError:
            raise _unreached(url, _TOO_LATE) from None
        return json.loads(json.dumps(answer))

    async def _answered(self, route: Route, review: Manifest, webhook: Mapping[str, Any]) -> Manifest:
        seconds = route.seconds(f"{webhook.get('timeoutSeconds', '')}s")
        calls = _Calls(self._cluster)
        try:
            async with asyncio.timeout(seconds):
                return (await route.respond(review, calls)).review
        except TimeoutError:
            late = f"{route.name}: {calls.name or 'the webhook'} did not return within {seconds:g} seconds"
            return route.reject_late(str(review["request"].get("uid") or ""), late).review

    def _due(self, call: Request) -> Iterable[Fault]:
        for index, fault in enumerate(self._faults):
            if fault.matches(call):
                self._counts[index] += 1
                if fault.is_due(self._counts[index]):
                    yield fault


class _Calls:
    """The functions of one request, all of which run in the event loop."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster: Cluster | None = cluster
        self.name = ""

    async def in_thread(self, function: Callable[[], T]) -> T:
        return function()

    async def in_loop(self, name: str, coroutine: Coroutine[Any, Any, T]) -> T:
        self.name = name
        return await coroutine


def can_call_webhooks(cluster: Cluster) -> bool:
    """Return whether a cluster can call webhooks in this process."""
    return _client_of(cluster) is not None


def _client_of(cluster: Cluster) -> HttpAdmissionClient | None:
    embedded = next((one for one in wrapped_clusters(cluster) if isinstance(one, EmbeddedCluster)), None)
    client = embedded.admission if embedded is not None else None
    return client if isinstance(client, HttpAdmissionClient) else None


def _call_of(review: Manifest) -> Request:
    """Return the write that a review is about."""
    asked = review["request"]
    kind = asked.get("kind") or {}
    part = asked.get("subResource") or ""
    return Request(
        _VERBS.get(asked.get("operation", ""), Verb.GET),
        "/".join(filter(None, [kind.get("group"), kind.get("version")])),
        kind.get("kind", ""),
        asked.get("namespace") or "",
        asked.get("name") or "",
        Subresource(part) if part in list(Subresource) else None,
        dry_run=bool(asked.get("dryRun")),
    )


def _unreached(url: str, problem: str) -> UnansweredError:
    dialed = f"dial tcp: {problem}" if problem.startswith("connect:") else problem
    return UnansweredError(f'failed to call webhook: Post "{url}": {dialed}')


async def _delayed(url: str, delay: timedelta, seconds: float) -> float:
    """Let the time of a delay pass, if it is virtual; return the seconds that are left."""
    if isinstance(asyncio.get_running_loop(), VirtualLoop):
        await asyncio.sleep(min(delay.total_seconds(), seconds))
    if delay.total_seconds() >= seconds:
        raise _unreached(url, _TOO_LATE)
    return seconds - delay.total_seconds()


def _read(body: str, status: int) -> Any:
    """Return what the API server reads of a response."""
    from ocf_server.api.webhook_call_errors import ResponseError, read_response

    try:
        return read_response(status, "text/plain", body.encode())
    except ResponseError as error:
        raise UnansweredError(f"failed to call webhook: {error}") from error
