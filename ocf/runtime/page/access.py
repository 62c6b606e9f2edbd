"""Who calls the page, and what the caller may read: TokenReviews and SubjectAccessReviews, kept for a short time.

Source of the semantics: the filter for metrics of controller-runtime (`pkg/metrics/filters`), and the limits of
kube-apiserver for delegated reviews. A review that fails is never kept, and no caller gets in by it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from ocf.errors import ForbiddenError
from ocf.objects import Manifest
from ocf.ownership import values

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.schema.rest_mapping import RESTMapping

__all__ = ["Caller", "CallerForbiddenError", "Everyone", "Reviews", "Sessions", "denied"]

T = TypeVar("T")

_MANAGER: Final = "ocf-page"
_YES_SECONDS: Final = 30.0
_NO_SECONDS: Final = 10.0
_MOST: Final = 4096
"""Answers that are kept; a caller can ask for any number."""
_AT_ONCE: Final = 8
_ANONYMOUS: Final = "system:unauthenticated"
_SESSION_SECONDS: Final = 8 * 3600.0
_MOST_SESSIONS: Final = 1000


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated user, as a TokenReview describes it.

    Args:
        extra: The extra fields, in order.
    """

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class CallerForbiddenError(ForbiddenError):
    """The caller of the page lacks a right; other errors of this kind are about the process."""


def denied(
    caller: Caller, verb: str, resource: RESTMapping, namespace: str = "", name: str = ""
) -> CallerForbiddenError:
    """Return the error of a caller without a right, worded as by the API server, so that it names the missing rule."""
    place = "at the cluster scope"
    if resource.namespaced:
        place = f'in the namespace "{namespace}"' if namespace else f"{place}, nor in any namespace that has some"
    subject = f'{resource.plural}.{resource.group} "{name}"' if name else f"{resource.plural}.{resource.group}"
    asked = f'cannot {verb} resource "{resource.plural}" in API group "{resource.group}"'
    text = f'{subject} is forbidden: User "{caller.user}" {asked} {place}'
    return CallerForbiddenError(text, code=403, reason="Forbidden")


@dataclass(slots=True)
class _Kept:
    answer: asyncio.Task[Any]
    until: float


class Reviews:
    """Asks the API server who a token is, and what a user may read.

    Args:
        cluster: The cluster, with the rights of the process: to create `tokenreviews` and `subjectaccessreviews`.
        resource_of: Returns the resource of a kind.
    """

    def __init__(self, cluster: Cluster, resource_of: Callable[[str, str], RESTMapping]) -> None:
        self._cluster = cluster
        self._resource_of = resource_of
        self._kept: dict[Hashable, _Kept] = {}
        self._free = asyncio.Semaphore(_AT_ONCE)

    async def caller(self, token: str) -> Caller | None:
        """Return the user of a token; None if it is not one.

        Raises:
            ApiError: If the API server does not answer.
        """
        # The token itself is kept nowhere but in the session of its caller.
        return await self._once(("token", sha256(token.encode()).digest()), lambda: self._authenticate(token))

    async def may(self, caller: Caller, verb: str, kind: tuple[str, str], namespace: str = "", name: str = "") -> bool:
        """Return whether a user may do something with objects of a kind.

        Args:
            namespace: Their namespace; empty for all.
            name: The name of the object; empty for all.

        Raises:
            ApiError: As by `caller`.
        """
        asked = (caller, verb, kind, namespace, name)
        return await self._once(asked, lambda: self._authorize(*asked))

    async def _authenticate(self, token: str) -> Caller | None:
        status = await self._review("authentication.k8s.io/v1", "TokenReview", {"token": token})
        found = values.mapping(status, "user")
        groups = tuple(str(one) for one in found.get("groups") or ())
        user = values.text(found, "username")
        if status.get("authenticated") is not True or not user or _ANONYMOUS in groups:
            return None
        extra = values.mapping(found, "extra")
        listed = sorted((str(name), tuple(str(one) for one in several or ())) for name, several in extra.items())
        return Caller(user, values.text(found, "uid"), groups, tuple(listed))

    async def _authorize(self, caller: Caller, verb: str, kind: tuple[str, str], namespace: str, name: str) -> bool:
        resource = self._resource_of(*kind)
        attributes = {"group": resource.group, "resource": resource.plural, "verb": verb}
        attributes |= {"namespace": namespace if resource.namespaced else "", "name": name}
        spec: Manifest = {
            "user": caller.user,
            "groups": list(caller.groups),
            "extra": {one: list(several) for one, several in caller.extra},
            "resourceAttributes": {one: value for one, value in attributes.items() if value},
        }
        if caller.uid:
            spec["uid"] = caller.uid
        status = await self._review("authorization.k8s.io/v1", "SubjectAccessReview", spec)
        return status.get("allowed") is True

    async def _review(self, api_version: str, kind: str, spec: Manifest) -> Mapping[str, Any]:
        review: Manifest = {"apiVersion": api_version, "kind": kind, "metadata": {}, "spec": spec}
        async with self._free:
            return values.mapping(await self._cluster.create(review, field_manager=_MANAGER), "status")

    async def _once(self, key: Hashable, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return a kept answer, or ask once for all who wait for it."""
        now = asyncio.get_running_loop().time()
        kept = self._kept.get(key)
        if kept is None or kept.until <= now:
            task = asyncio.create_task(ask(), name="review of a caller of the page")
            kept = self._kept[key] = _Kept(task, float("inf"))
            task.add_done_callback(lambda done: self._keep(key, done))
            while len(self._kept) > _MOST:
                del self._kept[next(iter(self._kept))]
        # One of several callers may be gone before the answer is there.
        return cast("T", await asyncio.shield(kept.answer))

    def _keep(self, key: Hashable, done: asyncio.Task[Any]) -> None:
        kept = self._kept.get(key)
        if kept is None or kept.answer is not done:
            return
        if done.cancelled() or done.exception() is not None:
            del self._kept[key]
        else:
            kept.until = asyncio.get_running_loop().time() + (_YES_SECONDS if done.result() else _NO_SECONDS)


class Everyone:
    """The rights of the page of `ocf dev`, whose cluster is its own: it has one caller, who may read everything."""

    async def caller(self, token: str) -> Caller | None:
        """Return the one caller."""
        del token
        return Caller("")

    async def may(self, caller: Caller, verb: str, kind: tuple[str, str], namespace: str = "", name: str = "") -> bool:
        """Return whether a user may do something with objects of a kind."""
        del caller, verb, kind, namespace, name
        return True


class Sessions:
    """The tokens of callers with a browser, which cannot send one with each request.

    The cookie has a random name of the token only: a browser sends the cookies of `localhost` to all of its ports.
    """

    def __init__(self) -> None:
        self._tokens: dict[str, tuple[float, str]] = {}

    def open(self, token: str) -> str:
        """Return the identifier of a new session of a token."""
        self._drop(name for name, (until, _) in self._tokens.items() if until <= self._now())
        self._drop([*self._tokens][: max(0, len(self._tokens) - _MOST_SESSIONS + 1)])
        name = token_urlsafe(32)
        self._tokens[name] = self._now() + _SESSION_SECONDS, token
        return name

    def token(self, name: str) -> str:
        """Return the token of a session; empty if there is none, or it has ended."""
        until, token = self._tokens.get(name, (0.0, ""))
        return token if until > self._now() else ""

    def close(self, name: str) -> None:
        """End a session."""
        self._tokens.pop(name, None)

    def _drop(self, names: Iterable[str]) -> None:
        for name in [*names]:
            del self._tokens[name]

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
