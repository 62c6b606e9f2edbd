"""The page over a socket: who may see it, what each may see, and that nothing from a caller or an object acts.

Public reports that are rebuilt here: https://github.com/kubernetes/kubernetes/issues/70160 and
https://github.com/kubernetes-retired/dashboard/issues/1361 (parts of the address in the answer),
https://github.com/kubernetes-sigs/headlamp/issues/1827 (a token that is longer than a header may be),
https://github.com/linkerd/linkerd2/issues/3083 (a name of another site that leads to this machine),
https://github.com/kubearchive/kubearchive/issues/194 (two reviews for each request),
https://github.com/harness/harness/issues/1293 (a proxy holds back the events).
"""

from __future__ import annotations

import asyncio
import json
import re
from html import unescape
from itertools import pairwise
from typing import Any

import pytest
from aiohttp import ClientResponse, ClientSession, CookieJar

from ocf.cluster.interceptor import InterceptingCluster
from ocf.errors import ConfigError, OcfError, ServerError
from ocf.objects import ObjectKey
from ocf.ownership import OwnerExplanation
from ocf.runtime.page import PageOptions, server
from ocf.runtime.page.access import Caller, Reviews, Sessions
from ocf.runtime.page.options import SpecText
from ocf.runtime.page.stream import Streams
from ocf.runtime.rbac.rules import mapping_or_guess
from ocf.testing import LoopClock, run_in_virtual_time
from ocf_server import EmbeddedCluster
from tests.runtime.operator.conftest import key_of, shop
from tests.runtime.page.conftest import VALUE, broken, elsewhere, processing

OWNER = "/Shop.example.com/town/corner"
PAGES = ["/", "/activity", OWNER, "/changes", "/changes?of=activity", f"/changes?of={OWNER[1:]}"]


@pytest.mark.parametrize("path", PAGES)
async def test_callers_without_a_token_of_the_cluster_see_nothing(path: str) -> None:
    async with processing() as process:
        await process.made(shop())
        answers = [await process.get(path), await process.get(path, "no-token"), await process.get(path, "  ")]
        answers.append(await process.get(path, Authorization="Basic Y29ybmVyOmNvcm5lcg=="))
        answers.append(await process.get(path, Cookie="ocf-page=guessed"))
    assert {status for status, _ in answers} == {401}
    assert not [text for _, text in answers if "corner" in text]


@pytest.mark.parametrize(
    ("path", "lacks"),
    [
        *((path, "ClusterRole") for path in ("/", "/activity", "/changes?of=activity")),
        *((path, 'Role in the namespace "town"') for path in (OWNER, f"{OWNER}-2", f"/changes?of={OWNER[1:]}")),
    ],
)
async def test_callers_without_rights_see_which_one_is_missing(path: str, lacks: str) -> None:
    """Whether the owner exists or not."""
    async with processing() as process:
        await process.made(shop())
        token = await process.token("robot", pods=["get", "list"])
        status, text = await process.get(path, token)
    assert status == 403
    assert f"of a {lacks} that is bound to this user" in unescape(text)
    assert '"resources": ["shops"]' in unescape(text)
    assert "corner-settings" not in text


async def test_a_caller_who_may_list_sees_that_there_is_no_owner_yet() -> None:
    async with processing() as process:
        everywhere = await process.token("all", all_shops=["get", "list"])
        answers = [await process.get(path, everywhere) for path in ("/", "/activity", OWNER)]
    assert [status for status, _ in answers] == [200, 200, 404]
    assert "There is no owner." in answers[0][1]


async def test_each_caller_sees_the_owners_that_the_user_may_list() -> None:
    async with processing() as process:
        await process.made(shop(), elsewhere("cottage"))
        town = await process.token("one", shops=["get", "list"])
        everywhere = await process.token("all", all_shops=["get", "list"])
        (_, some), (_, every) = await process.get("/", town), await process.get("/", everywhere)
        (_, activity), (_, whole) = await process.get("/activity", town), await process.get("/activity", everywhere)
        hidden, _ = await process.get("/Shop.example.com/village/cottage", town)
        shown, _ = await process.get("/Shop.example.com/village/cottage", everywhere)
    assert ("corner" in some, "cottage" in some) == (True, False)
    assert "only those of the namespaces in which you may list them are shown" in some
    assert ("corner" in every, "cottage" in every, "only those" in every) == (True, True, False)
    assert ("cottage" in activity, "cottage" in whole) == (False, True)
    assert (hidden, shown) == (403, 200)


async def test_values_of_fields_are_those_of_objects_that_the_user_may_read() -> None:
    async with processing() as process:
        await process.made(shop(motto="fresh bread"))
        without = await process.token("one", shops=["get", "list"])
        reader = await process.token("two", shops=["get", "list"], configmaps=["get"], secrets=["get"])
        (_, less), (_, more) = await process.get(OWNER, without), await process.get(OWNER, reader)
    assert ("fresh bread" in less, "of an object that you may not read" in less) == (False, True)
    assert "fresh bread" in more
    # Not even for who may read Secrets.
    assert VALUE not in more


async def test_the_picture_has_the_order_and_the_guards_that_the_code_declares() -> None:
    async with processing() as process:
        await process.made(shop())
        token = await process.token("all", all_shops=["get", "list"])
        (_, text) = await process.get(OWNER, token)
    assert "1. component web" in text
    assert "1. Secret corner-access" in text
    assert "2. ConfigMap corner-settings" in text


async def test_a_failure_shows_no_text_of_the_author_s_exception() -> None:
    async with processing() as process:
        await process.made(broken("corner"))
        token = await process.token("all", all_shops=["get", "list"])
        pages = [await process.get(path, token) for path in ("/", "/activity", OWNER)]
    assert [status for status, _ in pages] == [200, 200, 200]
    assert "unexpected RuntimeError" in pages[2][1]
    assert not [text for _, text in pages if VALUE in text]


async def test_reviews_are_kept_for_a_while_and_asked_once_for_all_who_wait() -> None:
    async with processing() as process:
        await process.made(shop())
        token = await process.token("all", all_shops=["get", "list"])
        before = process.reviews()
        await asyncio.gather(*(process.get("/", token) for _ in range(8)))
        after = process.reviews()
    assert {kind: after[kind] - before.get(kind, 0) for kind in after} == {"TokenReview": 1, "SubjectAccessReview": 1}


class Flaky(InterceptingCluster):
    """A cluster whose reviews fail at first, and which knows one user."""

    def __init__(self, failures: int) -> None:
        super().__init__(EmbeddedCluster())
        self.failures, self.asked = failures, 0

    async def intercept(self, request: Any, send: Any) -> Any:
        del request, send
        self.asked += 1
        if self.asked <= self.failures:
            raise ServerError("no answer", code=500)
        user = {"username": "jane", "groups": ["shopkeepers"], "extra": {"team": ["bread"]}}
        return {"status": {"authenticated": True, "user": user, "allowed": True}}


def test_answers_end_and_errors_are_not_kept() -> None:
    async def test() -> None:
        cluster = Flaky(failures=1)
        reviews = Reviews(cluster, lambda version, kind: mapping_or_guess(version, kind, ()))
        with pytest.raises(ServerError):
            await reviews.caller("token")
        jane = Caller("jane", groups=("shopkeepers",), extra=(("team", ("bread",)),))
        assert await reviews.caller("token") == jane
        for _ in range(3):
            assert await reviews.may(jane, "list", ("example.com/v1", "Shop"))
        assert cluster.asked == 3
        # Another user, uid or namespace is another question.
        await reviews.may(Caller("jane"), "list", ("example.com/v1", "Shop"))
        await reviews.may(jane, "list", ("example.com/v1", "Shop"), "town")
        assert cluster.asked == 5
        await asyncio.sleep(31)
        assert await reviews.caller("token") == jane
        assert cluster.asked == 6

    run_in_virtual_time(test())


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"authenticated": "true", "user": {"username": "jane"}},
        {"authenticated": True, "user": {}},
        {"authenticated": True, "user": {"username": "system:anonymous", "groups": ["system:unauthenticated"]}},
        {"authenticated": False, "user": {"username": "jane"}},
    ],
    ids=["nothing", "a text", "no user", "anonymous", "no"],
)
def test_an_answer_that_names_no_user_is_not_a_caller(status: Any) -> None:
    class Answering(Flaky):
        async def intercept(self, request: Any, send: Any) -> Any:
            del request, send
            return {"status": status}

    async def test() -> None:
        reviews = Reviews(Answering(0), lambda version, kind: mapping_or_guess(version, kind, ()))
        assert await reviews.caller("token") is None
        assert not await reviews.may(Caller("jane"), "list", ("v1", "Pod"))

    run_in_virtual_time(test())


async def test_a_browser_logs_in_with_a_token_and_out_again() -> None:
    async with processing() as process, ClientSession(process.url, cookie_jar=CookieJar(unsafe=True)) as session:
        await process.made(shop())
        token = await process.token("all", all_shops=["get", "list"])
        async with session.post("/login", data={"token": "wrong"}) as answer:
            assert answer.status == 401
        async with session.post("/login", data={"token": f" {token}\n"}, allow_redirects=False) as answer:
            cookie = answer.cookies["ocf-page"]
            assert (answer.status, cookie["httponly"], cookie["samesite"]) == (303, True, "Strict")
            assert token not in cookie.value
        async with session.get("/") as answer:
            assert "corner" in await answer.text()
        async with session.post("/logout", allow_redirects=False) as answer:
            assert answer.status == 303
        async with session.get("/", headers={"Cookie": f"ocf-page={cookie.value}"}) as answer:
            assert answer.status == 401


def test_sessions_end_and_are_few() -> None:
    async def test() -> None:
        sessions = Sessions()
        names = [sessions.open(f"token-{number}") for number in range(1003)]
        assert [sessions.token(one) for one in (names[0], names[3], names[-1])] == ["", "token-3", "token-1002"]
        await asyncio.sleep(8 * 3600 + 1)
        assert not sessions.token(names[-1])

    run_in_virtual_time(test())


@pytest.mark.parametrize(
    "site", [{"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://evil.example"}, {"Origin": "null"}]
)
async def test_forms_of_other_sites_are_rejected(site: dict[str, str]) -> None:
    async with (
        processing() as process,
        ClientSession(process.url) as session,
        session.post("/login", data={"token": "x"}, headers=site) as answer,
    ):
        assert answer.status == 403


async def test_tokens_of_many_groups_are_longer_than_usual_headers() -> None:
    async with processing() as process:
        status, _ = await process.get("/", "t" * 20_000)
    assert status == 401


@pytest.mark.parametrize(
    "path", ["/<img src=x onerror=alert(1)>", "/a/b/<script>", "/?q=<script>alert(1)</script>", "/x"]
)
async def test_no_part_of_an_address_acts_in_the_answer(path: str) -> None:
    async with processing() as process:
        token = await process.token("all", all_shops=["get", "list"])
        async with process.opened(path, token) as answer:
            text = await answer.text()
            headers = answer.headers
    assert "<img" not in text
    assert "<script>" not in text
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["Content-Type"].startswith("text/html" if "?" in path else "text/plain")


async def test_a_process_in_a_cluster_has_no_way_to_write() -> None:
    async with processing() as process, ClientSession(process.url) as session:
        await process.made(shop())
        token = await process.token("all", all_shops=["get", "list", "update", "patch"])
        head = {"Authorization": f"Bearer {token}"}
        answers = []
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            async with session.request(
                method, OWNER, headers=head, data={"do": "write", "spec": "motto: mine"}
            ) as answer:
                answers.append(answer.status)
        text = (await process.get(OWNER, token))[1]
    assert answers == [405, 405, 405, 405]
    assert "Edit the spec" not in text


async def message(answer: ClientResponse) -> Any:
    line = await answer.content.readuntil(b"\n\n")
    return json.loads(line.decode().removeprefix("data: "))


async def test_a_page_gets_what_has_changed_since_it_was_loaded() -> None:
    async with processing() as process:
        await process.made(shop())
        token = await process.token("all", all_shops=["get", "list"])
        await process.page.view.look()
        (_, text) = await process.get("/", token)
        shown = re.findall(r'data-token="(\w+)"', text)[0]
        async with (
            process.opened("/changes?of=owners&token=another", token) as late,
            process.opened(f"/changes?of=owners&token={shown}", token) as current,
        ):
            head = current.headers["Content-Type"], current.headers["X-Accel-Buffering"]
            whole = await message(late)
            await process.made(elsewhere("cottage"))
            changes = [await message(late), await message(current)]
    assert head == ("text/event-stream", "no")
    assert whole["token"] == shown
    assert whole["parts"].keys() == {"summary", "search", "owners"}
    assert [one["parts"].keys() for one in changes] == [{"summary", "owners"}] * 2
    assert "cottage" in changes[1]["parts"]["owners"]


async def test_a_stream_ends_with_the_session_of_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_ALIVE", 0.05)
    async with processing() as process, ClientSession(process.url, cookie_jar=CookieJar(unsafe=True)) as session:
        await process.made(shop())
        token = await process.token("all", all_shops=["get", "list"])
        async with session.post("/login", data={"token": token}, allow_redirects=False):
            pass
        async with session.get("/changes?of=owners") as stream:
            assert await stream.content.readuntil(b"\n\n")
            async with session.post("/logout", allow_redirects=False):
                pass
            # Nothing but comments until then.
            rest = await stream.content.read()
    assert rest.replace(b": alive\n\n", b"") == b""


class OwnerEditor:
    """What `ocf dev` adds, without a cluster."""

    def __init__(self) -> None:
        self.written: list[SpecText] = []

    async def explain(self, owner: ObjectKey) -> OwnerExplanation:
        raise OcfError(f"not now: {owner}")

    async def spec(self, owner: ObjectKey) -> SpecText:
        return SpecText(f"motto: open # </textarea><script>{owner.name}", "1")

    async def planned(self, owner: ObjectKey, edited: SpecText) -> tuple[()]:
        if "bad" in edited.text:
            raise ConfigError(f"<b>{owner.name}</b> is bad")
        return ()

    async def write(self, owner: ObjectKey, edited: SpecText) -> None:
        assert owner == key_of()
        self.written.append(edited)


async def test_a_bench_shows_a_plan_before_it_writes_and_only_for_its_own_form() -> None:
    editor = OwnerEditor()
    async with processing(PageOptions(port=0, editor=editor)) as process, ClientSession(process.url) as session:
        await process.made(shop())
        (_, text) = await process.get(OWNER)
        key = re.findall(r'name="key" value="([\w-]+)"', text)[0]
        statuses, texts = [], []
        for form in (
            {"do": "write", "spec": "motto: stolen", "key": "guessed"},
            {"do": "plan", "spec": "bad", "key": key},
            {"do": "plan", "spec": "motto: new\r\n", "generation": "1", "key": key},
            {"do": "write", "spec": "motto: new\r\n", "generation": "1", "key": key},
        ):
            async with session.post(OWNER, data=form, allow_redirects=False) as answer:
                statuses.append(answer.status)
                texts.append(await answer.text())
    assert "</textarea><script>" not in text
    assert statuses == [403, 200, 200, 303]
    assert "&lt;b&gt;corner&lt;/b&gt; is bad" in texts[1]
    assert ("Write it" in text, "Write it" in texts[1], "Write it" in texts[2]) == (False, False, True)
    assert editor.written == [SpecText("motto: new\n", "1")]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
async def test_a_bench_is_reached_by_a_name_of_this_machine_only(host: str) -> None:
    async with processing(PageOptions(port=0, editor=OwnerEditor())) as process:
        assert (await process.get("/", Host=host))[0] in {400, 403}
        assert (await process.get("/", Host="localhost:1234"))[0] == 200


@pytest.mark.parametrize("host", ["192.0.2.1", "::", "10.0.0.1", "shops.example.com", ""])
def test_a_bench_listens_on_this_machine_only(host: str) -> None:
    with pytest.raises(ConfigError, match="host must be a loopback address"):
        PageOptions(host=host, editor=OwnerEditor())


def test_a_page_rests_after_what_it_has_spent() -> None:
    async def test() -> None:
        clock, looks = LoopClock(), []

        async def look(_: object) -> float:
            looks.append(clock.elapsed().total_seconds())
            return 0.4

        async def render(_: str) -> dict[str, str]:
            return {}

        streams: Streams[str] = Streams(render, look)
        with streams.subscribed("owners", ""):
            await asyncio.sleep(65)
        assert [round(after - before, 1) for before, after in pairwise(looks)] == [20.0, 20.0, 20.0]
        before = len(looks)
        await asyncio.sleep(100)
        assert len(looks) <= before + 1

    run_in_virtual_time(test())
