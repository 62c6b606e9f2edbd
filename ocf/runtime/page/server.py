"""The server of the page: routes, callers, and the stream of changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from secrets import compare_digest, token_urlsafe
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from ocf.errors import ApiError, ForbiddenError, OcfError, failure_text
from ocf.http.limits import Limits, connections_within
from ocf.http.server import serving_app
from ocf.objects import ObjectKey
from ocf.ownership.tree import OwnerExplanation, State
from ocf.runtime.monitoring.http_server import Endpoints
from ocf.runtime.page import html
from ocf.runtime.page.access import Caller, CallerForbiddenError, Everyone, Reviews, Sessions, denied
from ocf.runtime.page.html import Frame, Listing
from ocf.runtime.page.options import PageOptions, SpecText
from ocf.runtime.page.stream import Parts, Streams, token_of
from ocf.runtime.rbac.rules import mapping_or_guess

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.runtime.page.timeline import Reconcile, Timeline
    from ocf.runtime.page.view import ProcessView, RequestCounter

__all__ = ["serving_page"]

_log: Final = logging.getLogger(__name__)
_SHARE: Final = 1 / 4
_MOST: Final = 2048
# Tokens with many groups are longer than the usual limit of a header.
_HEADER_BYTES: Final = 2**16
_BODY_BYTES: Final = 2**20
_ALIVE: Final = 15.0
"""Seconds after which a stream without changes sends a comment, before a proxy takes it for dead."""
_MOST_NAMESPACES: Final = 100
"""Namespaces for which it is asked whether a caller may list owners, who may not list those of all."""
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_COOKIE: Final = "ocf-page"
_LOG_IN: Final = "The page shows what the user of a token may read."
_WAITING: Final = "This replica waits for its lease: another one leads, and shows the owners."
_UNREVIEWED: Final = (
    "the operator lacks the right to create tokenreviews and subjectaccessreviews, which `ocf manifests --page` grants"
)
_STOPPED: Final = "No operator runs."
_READING: Final = "The owners are still being read."
_RELOAD: Final = 5.0
"""Seconds for which the page of `ocf dev` waits for operators that are started again."""
_FIRST_LOOK: Final = 0.8
"""Seconds after which the first page shows the owners that are explained by then, and that others follow."""

_Kind = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Shown:
    """What an open page shows.

    Args:
        of: `owners`, `activity`, or the path of an owner.
    """

    caller: Caller
    of: str
    listing: Listing


@dataclass(frozen=True, slots=True)
class _Owners:
    """The owners that a caller may list.

    Args:
        note: Why there may be more; may be empty.
        missing: Names a right that is missing, if the caller may list owners neither of all namespaces nor of one that
            has some; None otherwise.
    """

    found: dict[ObjectKey, OwnerExplanation]
    note: str
    missing: CallerForbiddenError | None


@asynccontextmanager
async def serving_page(
    options: PageOptions, cluster: Cluster, view: ProcessView, timeline: Timeline, counter: RequestCounter
) -> AsyncIterator[Endpoints]:
    """Serve the page for as long as the block runs.

    Args:
        cluster: Gets the reviews of callers.

    Yields:
        Its address.

    Raises:
        ConfigError: If it cannot listen on the address.
    """
    page = _Page(options, cluster, view, timeline, counter)
    limits = Limits(connections=connections_within(_SHARE, _MOST), line_bytes=_HEADER_BYTES)
    app = page.app()
    address = (options.host, options.port)
    async with serving_app(app, limits, name="page", address=address, shutdown_timeout=0.1) as server:
        try:
            yield Endpoints(f"[{server.host}]" if ":" in server.host else server.host, server.port)
        finally:
            page.streams.close()


class _Page:
    def __init__(
        self, options: PageOptions, cluster: Cluster, view: ProcessView, timeline: Timeline, counter: RequestCounter
    ) -> None:
        self._editor = options.editor
        self._view = view
        self._timeline = timeline
        self._counter = counter
        self._rights: Reviews | Everyone
        self._rights = Everyone() if options.editor is not None else Reviews(cluster, self._resource_of)
        self._sessions = Sessions()
        self._form_key = token_urlsafe(16)
        self.streams: Streams[_Shown] = Streams(self._published, self._look)

    async def _look(self, shown: Iterable[_Shown]) -> float:
        """Look at all owners, if an open page shows them; return the seconds of the processor that this took."""
        await self._begun()
        before = self._view.spent
        if any(self._owner(one.of) is None for one in shown):
            await self._view.look()
        return self._view.spent - before

    def app(self) -> web.Application:
        """Return the application with its routes."""
        app = web.Application(middlewares=[self._guarded], client_max_size=_BODY_BYTES)
        app.router.add_get("/page.css", partial(_file, html.style, "text/css"))
        app.router.add_get("/page.js", partial(_file, html.script, "text/javascript"))
        app.router.add_get("/", self._get)
        app.router.add_get("/activity", self._get)
        app.router.add_get("/changes", self._changes)
        app.router.add_get("/{kind}/{namespace}/{name}", self._get)
        if self._editor is None:
            app.router.add_post("/login", self._log_in)
            app.router.add_post("/logout", self._log_out)
        else:
            app.router.add_post("/{kind}/{namespace}/{name}", self._edit)
        return app

    # Requests.

    @web.middleware
    async def _guarded(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Answer with the headers that keep a browser from running anything else, whatever the answer is."""
        try:
            answer = await self._answered(request, handler)
        except web.HTTPException as error:
            answer = _text(error.text or error.reason, error.status)
        except ForbiddenError as error:
            # It names the account of the process, which is nothing for callers.
            _log.warning("the page cannot review its callers: %s", failure_text(error))
            answer = _text(_UNREVIEWED, web.HTTPServiceUnavailable.status_code)
        except ApiError:
            # Its text may have the token of the caller.
            answer = _text("the API server does not answer: try again", web.HTTPServiceUnavailable.status_code)
        if not answer.prepared:
            answer.headers.update(_HEADERS)
        return answer

    async def _answered(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        host = request.host.rpartition(":")[0] if request.host.rpartition(":")[2].isdecimal() else request.host
        if self._editor is not None and host not in _LOOPBACK:
            # A page of another site, whose name was made to lead here, has the name of that site.
            raise web.HTTPForbidden(text="the page is served to this machine only: use its address as printed")
        if request.method == "POST" and not _is_own_form(request):
            raise web.HTTPForbidden(text="a form of another site")
        return await handler(request)

    async def _caller(self, request: web.Request) -> Caller | None:
        if self._editor is not None:
            return await self._rights.caller("")
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            token = self._sessions.token(request.cookies.get(_COOKIE, ""))
        return await self._rights.caller(token.strip()) if token.strip() else None

    async def _get(self, request: web.Request) -> web.StreamResponse:
        caller = await self._caller(request)
        if caller is None:
            return self._login_page(request, _LOG_IN)
        await self._begun()
        shown = _Shown(caller, request.path.strip("/") or "owners", _listing(request))
        try:
            parts = await self._first_parts(shown)
        except CallerForbiddenError as error:
            return _page(Frame("Forbidden", _root(request), caller.user), html.forbidden_parts(error), status=403)
        if parts is None:
            raise web.HTTPNotFound(text="no such page")
        after = ""
        owner = self._owner(shown.of)
        if self._editor is not None and owner is not None:
            with suppress(OcfError):
                after = html.edit_form(await self._editor.spec(owner), self._form_key)
        return self._document(request, shown, parts, after)

    def _document(self, request: web.Request, shown: _Shown, parts: Parts, after: str) -> web.Response:
        root = _root(request)
        of = shown.listing.query(of=shown.of)
        frame = Frame(_title(shown.of), root, shown.caller.user, f"{root}changes{of}")
        return _page(frame, parts, token=token_of(parts), after=after)

    async def _changes(self, request: web.Request) -> web.StreamResponse:
        caller = await self._caller(request)
        if caller is None:
            raise web.HTTPUnauthorized(text="log in first")
        await self._begun()
        shown = _Shown(caller, request.query.get("of", "owners"), _listing(request))
        try:
            if await self._first_parts(shown) is None:
                raise web.HTTPNotFound(text="no such page")
        except CallerForbiddenError as error:
            raise web.HTTPForbidden(text=str(error)) from error
        stream = web.StreamResponse(
            headers={**_HEADERS, "Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
        )
        await stream.prepare(request)
        with self.streams.subscribed(shown, request.query.get("token", "")) as subscriber:
            loop = asyncio.get_running_loop()
            checked = loop.time()
            while not subscriber.ended:
                message = b": alive\n\n"
                with suppress(TimeoutError):
                    async with asyncio.timeout(_ALIVE):
                        await subscriber.changed.wait()
                    message = subscriber.take()
                if loop.time() - checked >= _ALIVE:
                    # The token may have expired, or been revoked, also while there is always something to send.
                    # A browser connects again by itself, also after a time without an answer of the API server.
                    is_known = False
                    with suppress(ApiError):
                        is_known = await self._caller(request) == caller
                    if not is_known:
                        break
                    checked = loop.time()
                await stream.write(message)
        return stream

    # Content.

    async def _published(self, shown: _Shown) -> Parts | None:
        """Return what an open page shows; None if it is gone, or its caller may not see it any more."""
        try:
            return await self._parts(shown)
        except CallerForbiddenError:
            return None

    async def _first_parts(self, shown: _Shown) -> Parts | None:
        """Return what a page shows that is being opened, as by `_parts`; no page may have been open before."""
        if self._owner(shown.of) is None:
            await self._view.look(within=_FIRST_LOOK)
        return await self._parts(shown)

    async def _begun(self) -> None:
        """Wait for operators that `ocf dev` starts again."""
        if self._editor is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_RELOAD):
                    await self._view.begun()

    async def _parts(self, shown: _Shown) -> Parts | None:
        """Return what a page shows; None if there is no such page.

        Raises:
            CallerForbiddenError: If its caller may not see it, whether it exists or not; it names the missing right.
        """
        found = await self._content(shown)
        if self._editor is None or found is None:
            return found
        return {"notice": html.notice(self._view.notice), **found}

    async def _content(self, shown: _Shown) -> Parts | None:
        if shown.of == "owners":
            owners = await self._owners(shown.caller)
            # Until all owners are read, it is not known in which namespaces they are.
            if owners.missing is not None and self._view.is_synced and not self._view.unexplained:
                raise owners.missing
            return html.owners_parts(owners.found, shown.listing, owners.note)
        if shown.of == "activity":
            if not self._view.operators and self._editor is None:
                return None
            owners = await self._owners(shown.caller)
            if owners.missing is not None:
                raise owners.missing
            records = [one for one in self._timeline.latest() if one.owner in owners.found]
            visible = await self._visible(shown.caller, records)
            numbers = self._view.queues(), self._view.watches(), self._counter.per_second
            return html.activity_parts(*numbers, records, visible)
        key = self._owner(shown.of)
        if key is None:
            return None
        kind = key.api_version, key.kind
        if not await self._rights.may(shown.caller, "get", kind, key.namespace, key.name):
            raise denied(shown.caller, "get", self._resource_of(*kind), key.namespace, key.name)
        found = await self._explanation(key)
        if found is None:
            return None
        records = list(self._timeline.latest(key))
        visible = await self._visible(shown.caller, records)
        return html.owner_parts(key, found, records, visible, await self._view.declared(key))

    async def _explanation(self, key: ObjectKey) -> OwnerExplanation | None:
        found = self._view.explanation(key)
        if self._editor is None or found is None:
            return found
        try:
            return await self._editor.explain(key)
        except OcfError:
            return found

    async def _owners(self, caller: Caller) -> _Owners:
        """Return the owners that a caller may list."""
        found: dict[ObjectKey, OwnerExplanation] = {}
        missing: list[CallerForbiddenError] = []
        cut: list[str] = []
        kinds = [*dict.fromkeys(self._view.operators.values())]
        for kind in kinds:
            owners = {key: one for key, one in self._view.owners.items() if (key.api_version, key.kind) == kind}
            if await self._rights.may(caller, "list", kind):
                found |= owners
                continue
            homes = sorted({key.namespace for key in owners if key.namespace})
            asked = homes[:_MOST_NAMESPACES]
            may = await asyncio.gather(*(self._rights.may(caller, "list", kind, home) for home in asked))
            allowed = {home for home, is_allowed in zip(asked, may, strict=True) if is_allowed}
            found |= {key: one for key, one in owners.items() if key.namespace in allowed}
            if not allowed:
                missing.append(denied(caller, "list", self._resource_of(*kind)))
            if len(allowed) < len(homes):
                cut.append(kind[1])
        note = f"{', '.join(cut)}: only those of the namespaces in which you may list them are shown." if cut else ""
        if not kinds:
            note = _WAITING if self._editor is None else _STOPPED
        elif self._view.unexplained:
            note = f"{self._view.unexplained} more owners are still being explained: load the page again."
        elif not self._view.is_synced:
            note = _READING
        return _Owners(found, note, missing[0] if len(missing) == len(kinds) > 0 else None)

    async def _visible(self, caller: Caller, records: Iterable[Reconcile]) -> Callable[[ObjectKey], bool]:
        """Return a function that returns whether a caller may read an object that was written."""
        written = {(one.key.api_version, one.key.kind, one.key.namespace) for each in records for one in each.writes}
        asked = sorted(written)
        may = await asyncio.gather(*(self._rights.may(caller, "get", (one[0], one[1]), one[2]) for one in asked))
        allowed = {one for one, is_allowed in zip(asked, may, strict=True) if is_allowed}
        return lambda key: (key.api_version, key.kind, key.namespace) in allowed

    def _owner(self, path: str) -> ObjectKey | None:
        """Return the owner of a path; None if no operator has such owners."""
        parts = path.split("/")
        if len(parts) != len(("kind", "namespace", "name")):
            return None
        for api_version, kind in self._view.operators.values():
            key = ObjectKey(api_version, kind, parts[2], "" if parts[1] == "-" else parts[1])
            if parts[0] == f"{kind}.{key.group_kind[0]}":
                return key
        return None

    def _resource_of(self, api_version: str, kind: str) -> Any:
        return mapping_or_guess(api_version, kind, self._view.definitions)

    # Log in and out.

    def _login_page(self, request: web.Request, problem: str) -> web.Response:
        frame = Frame("Log in", _root(request))
        answer = _page(frame, {"login": html.login_form(problem, frame.root)}, status=401)
        answer.headers["WWW-Authenticate"] = "Bearer"
        return answer

    async def _log_in(self, request: web.Request) -> web.StreamResponse:
        token = str((await request.post()).get("token", "")).strip()
        if not token or await self._rights.caller(token) is None:
            return self._login_page(request, "The token is not one of this cluster, or has expired.")
        answer = web.Response(status=303, headers={"Location": "."})
        is_secure = request.headers.get("X-Forwarded-Proto", request.scheme) == "https"
        answer.set_cookie(
            _COOKIE, self._sessions.open(token), httponly=True, samesite="Strict", secure=is_secure, path="/"
        )
        return answer

    async def _log_out(self, request: web.Request) -> web.StreamResponse:
        self._sessions.close(request.cookies.get(_COOKIE, ""))
        answer = web.Response(status=303, headers={"Location": "."})
        answer.del_cookie(_COOKIE, path="/")
        return answer

    # The spec of an owner, in `ocf dev` only.

    async def _edit(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        await self._begun()
        key = self._owner(request.path.strip("/"))
        if key is None or self._editor is None or not compare_digest(str(form.get("key", "")), self._form_key):
            raise web.HTTPForbidden(text="the form is of another process: load the page again")
        edited = SpecText(str(form.get("spec", "")).replace("\r\n", "\n"), str(form.get("generation", "")))
        plan, problem = None, ""
        try:
            if form.get("do") == "write":
                await self._editor.write(key, edited)
                # Its own name, so that a proxy may serve the page below a path.
                return web.Response(status=303, headers={"Location": f"./{request.rel_url.raw_name}"})
            plan = await self._editor.planned(key, edited)
        except OcfError as error:
            problem = failure_text(error)
        shown = _Shown(Caller(""), request.path.strip("/"), Listing())
        parts = await self._parts(shown)
        if parts is None:
            raise web.HTTPNotFound(text="the owner is gone")
        return self._document(request, shown, parts, html.edit_form(edited, self._form_key, problem=problem, plan=plan))


def _is_own_form(request: web.Request) -> bool:
    """Return whether a form comes from a page of this server, as far as the browser says."""
    site = request.headers.get("Sec-Fetch-Site", "same-origin")
    origin = request.headers.get("Origin")
    return site in {"same-origin", "none"} and (origin is None or origin.partition("://")[2] == request.host)


def _listing(request: web.Request) -> Listing:
    state, page = request.query.get("state", ""), request.query.get("page", "")
    return Listing(
        search=request.query.get("q", "")[:200],
        state=state if state in {*State} else "",
        page=int(page) if page.isascii() and page.isdecimal() and len(page) < len("1000000") else 0,
    )


def _root(request: web.Request) -> str:
    """Return the relative address of the first page, so that a proxy may serve the page below a path."""
    return "../" * (request.path.count("/") - 1)


def _title(of: str) -> str:
    kind, _, place = of.partition("/")
    return f"{place} ({kind.partition('.')[0]})" if place else of.capitalize()


def _page(frame: Frame, parts: Parts, *, status: int = 200, token: str = "", after: str = "") -> web.Response:
    body = html.document(frame, parts, token=token, after=after).encode(errors="replace")
    return web.Response(body=body, status=status, content_type="text/html", charset="utf-8")


async def _file(content: Callable[[], str], content_type: str, _: web.Request) -> web.Response:
    return web.Response(text=content(), content_type=content_type, charset="utf-8")


def _text(text: str, status: int) -> web.Response:
    return web.Response(text=f"{text}\n", status=status, content_type="text/plain")
