"""Discovery requests a group version once for all callers, and once more before a kind is missing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ocf.cluster import Subresource
from ocf.cluster.client.discovery import Discovery, read_resources
from ocf.errors import BadRequestError, NoKindMatchError, NotFoundError, ServerError

_WEB = {"name": "webs", "namespaced": True, "kind": "Web"}
_WEB_STATUS = {"name": "webs/status", "namespaced": True, "kind": "Web"}
_LATE = {"name": "lates", "namespaced": False, "kind": "Late"}


class Answers:
    """Serves answers in order, then repeats the last one; waits for `gate` if it is set."""

    def __init__(self, *answers: list[dict[str, Any]] | Exception) -> None:
        self.answers = list(answers)
        self.paths: list[str] = []
        self.gate: asyncio.Event | None = None
        self.asked = asyncio.Event()

    async def __call__(self, path: str) -> dict[str, Any]:
        self.paths.append(path)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.asked.set()
        if self.gate:
            await self.gate.wait()
        if isinstance(answer, Exception):
            raise answer
        return {"kind": "APIResourceList", "resources": answer}


class TestReadResources:
    def test_subresources_belong_to_the_resource_before_the_slash(self) -> None:
        scale = {"name": "webs/scale", "group": "autoscaling", "version": "v1", "kind": "Scale"}
        found = read_resources(
            {"resources": [_WEB_STATUS, _WEB, scale, {"name": "webs2/x", "kind": "Web2"}]}, "x.io/v1"
        )

        assert list(found) == ["Web"]
        assert (found["Web"].plural, found["Web"].namespaced) == ("webs", True)
        assert found["Web"].subresources == {"status": ("x.io/v1", "Web"), "scale": ("autoscaling/v1", "Scale")}

    def test_a_subresource_of_the_core_group_has_no_slash(self) -> None:
        pods = [{"name": "pods", "kind": "Pod"}, {"name": "pods/x", "kind": "X", "version": "v1"}]

        assert read_resources({"resources": pods}, "v1")["Pod"].subresources == {"x": ("v1", "X")}

    def test_of_two_resources_of_a_kind_the_first_is_used(self) -> None:
        found = read_resources({"resources": [_WEB, {**_WEB, "name": "others"}]}, "x.io/v1")

        assert found["Web"].plural == "webs"

    @pytest.mark.parametrize("answer", [{}, {"resources": None}, {"resources": [{"name": ""}]}])
    def test_an_empty_answer_has_no_resources(self, answer: dict[str, Any]) -> None:
        assert read_resources(answer, "v1") == {}


class TestFind:
    async def test_a_known_kind_is_not_requested_again(self) -> None:
        answers = Answers([_WEB])
        discovery = Discovery(answers)
        found = [await discovery.find("x.io/v1", "Web") for _ in range(3)]

        assert [resource.plural for resource in found] == ["webs"] * 3
        assert answers.paths == ["/apis/x.io/v1"]

    async def test_group_versions_are_requested_separately(self) -> None:
        answers = Answers([_WEB])
        discovery = Discovery(answers)
        await discovery.find("v1", "Web")
        await discovery.find("x.io/v1", "Web")

        assert answers.paths == ["/api/v1", "/apis/x.io/v1"]

    async def test_concurrent_callers_share_one_request(self) -> None:
        answers = Answers([_WEB, _LATE])
        discovery = Discovery(answers)
        await asyncio.gather(*(discovery.find("v1", kind) for kind in ["Web", "Late"] * 20))

        assert len(answers.paths) == 1

    async def test_a_kind_created_later_is_found(self) -> None:
        answers = Answers([_WEB], [_WEB, _LATE])
        discovery = Discovery(answers)
        await discovery.find("v1", "Web")
        found = await discovery.find("v1", "Late")

        assert (found.plural, found.namespaced, len(answers.paths)) == ("lates", False, 2)

    async def test_a_kind_created_during_another_request_is_found(self) -> None:
        """The answer to an earlier request does not show the present state."""
        answers = Answers([_WEB], [_WEB, _LATE])
        answers.gate = asyncio.Event()
        discovery = Discovery(answers)
        earlier = asyncio.create_task(discovery.find("v1", "Web"))
        await answers.asked.wait()
        later = asyncio.create_task(discovery.find("v1", "Late"))
        await asyncio.sleep(0)
        answers.gate.set()
        await earlier

        assert (await later).plural == "lates"
        assert len(answers.paths) == 2

    async def test_a_missing_kind_costs_one_request_per_call(self) -> None:
        answers = Answers([_WEB])
        discovery = Discovery(answers)
        await discovery.find("v1", "Web")
        with pytest.raises(NotFoundError, match='the server has no kind "Nope" in v1') as caught:
            await discovery.find("v1", "Nope")

        assert (caught.value.code, caught.value.reason, len(answers.paths)) == (404, "NotFound", 2)

    async def test_many_callers_of_a_missing_kind_share_its_requests(self) -> None:
        answers = Answers([_WEB])
        discovery = Discovery(answers)
        outcomes = await asyncio.gather(*(discovery.find("v1", "Nope") for _ in range(20)), return_exceptions=True)

        assert {type(outcome) for outcome in outcomes} == {NoKindMatchError}
        assert len(answers.paths) == 2

    async def test_an_unknown_group_version_has_no_kinds(self) -> None:
        answers = Answers(NotFoundError("404 page not found", code=404), [_WEB])
        discovery = Discovery(answers)
        with pytest.raises(NotFoundError, match=r'no kind "Web" in x\.io/v1'):
            await discovery.find("x.io/v1", "Web")

        assert (await discovery.find("x.io/v1", "Web")).plural == "webs"

    async def test_missing_kinds_that_are_looked_for_at_once_share_a_request(self) -> None:
        """Only the group version that has come is requested itself."""
        groups = ["a.io", "b.io", "c.io"]
        served: set[str] = set()
        paths: list[str] = []

        async def fetch(path: str) -> dict[str, Any]:
            paths.append(path)
            if path == "/apis":
                return {"groups": [{"versions": [{"groupVersion": f"{one}/v1"}]} for one in sorted(served)]}
            if path.split("/")[2] not in served:
                raise NotFoundError("404 page not found", code=404)
            return {"resources": [_WEB]}

        discovery = Discovery(fetch)

        async def look() -> list[bool]:
            paths.clear()
            finds = (discovery.find(f"{group}/v1", "Web") for group in groups)
            found = await asyncio.gather(*finds, return_exceptions=True)
            return [not isinstance(one, NotFoundError) for one in found]

        assert await look() == [False, False, False]
        assert paths == ["/apis/a.io/v1", "/apis/b.io/v1", "/apis/c.io/v1"]
        assert await look() == [False, False, False]
        assert paths == ["/apis"]
        served.add("b.io")
        assert await look() == [False, True, False]
        assert paths == ["/apis", "/apis/b.io/v1"]
        with pytest.raises(NotFoundError):
            await discovery.find("a.io/v1", "Web")

    async def test_a_look_that_begins_during_another_sends_its_own_request(self) -> None:
        """The answer to an earlier request does not show the present state."""
        gate, paths, served = asyncio.Event(), list[str](), list[str]()

        async def fetch(path: str) -> dict[str, Any]:
            paths.append(path)
            shown = [{"versions": [{"groupVersion": f"{one}/v1"}]} for one in served]
            if path == "/apis":
                await gate.wait()
                return {"groups": shown}
            if path.split("/")[2] not in served:
                raise NotFoundError("404 page not found", code=404)
            return {"resources": [_WEB]}

        discovery = Discovery(fetch)
        groups = ["a.io/v1", "b.io/v1", "c.io/v1", "d.io/v1"]
        await asyncio.gather(*(discovery.find(one, "Web") for one in groups), return_exceptions=True)
        early = [asyncio.create_task(discovery.find(one, "Web")) for one in groups[:2]]
        await asyncio.sleep(0.001)
        served.append("c.io")
        late = [asyncio.create_task(discovery.find(one, "Web")) for one in groups[2:]]
        await asyncio.sleep(0.001)
        gate.set()
        outcomes = await asyncio.gather(*early, *late, return_exceptions=True)

        assert [isinstance(one, NotFoundError) for one in outcomes] == [True, True, False, True]
        assert paths[4:] == ["/apis", "/apis", "/apis/c.io/v1"]

    async def test_closing_cancels_a_shared_request(self) -> None:
        asked = asyncio.Event()

        async def fetch(path: str) -> dict[str, Any]:
            if path == "/apis":
                asked.set()
                await asyncio.get_running_loop().create_future()
            raise NotFoundError("404 page not found", code=404)

        discovery = Discovery(fetch)
        groups = ["a.io/v1", "b.io/v1"]
        await asyncio.gather(*(discovery.find(one, "Web") for one in groups), return_exceptions=True)
        callers = [asyncio.create_task(discovery.find(one, "Web")) for one in groups]
        await asked.wait()
        await discovery.close()
        outcomes = await asyncio.gather(*callers, return_exceptions=True)

        assert [type(one) for one in outcomes] == [ServerError, ServerError]

    async def test_a_subresource_enabled_later_is_found(self) -> None:
        answers = Answers([_WEB], [_WEB, _WEB_STATUS])
        discovery = Discovery(answers)
        await discovery.find("v1", "Web")

        assert "status" in (await discovery.find("v1", "Web", Subresource.STATUS)).subresources

    async def test_a_missing_subresource_is_named(self) -> None:
        with pytest.raises(NotFoundError, match='Web of v1 has no subresource "scale"'):
            await Discovery(Answers([_WEB])).find("v1", "Web", Subresource.SCALE)

    async def test_a_failure_is_not_cached(self) -> None:
        answers = Answers(ServerError("unavailable", code=503), [_WEB])
        discovery = Discovery(answers)
        with pytest.raises(ServerError, match="unavailable"):
            await discovery.find("v1", "Web")

        assert (await discovery.find("v1", "Web")).plural == "webs"

    async def test_a_failure_keeps_the_known_resources(self) -> None:
        answers = Answers([_WEB], ServerError("unavailable", code=503))
        discovery = Discovery(answers)
        await discovery.find("v1", "Web")
        with pytest.raises(ServerError, match="unavailable"):
            await discovery.find("v1", "Late")

        assert (await discovery.find("v1", "Web")).plural == "webs"

    @pytest.mark.parametrize("api_version", ["", "/v1", "apps/", "..", "../v1", "a/b/c", "apps/.."])
    async def test_an_api_version_with_path_traversal_is_rejected(self, api_version: str) -> None:
        answers = Answers([_WEB])
        with pytest.raises(BadRequestError, match="apiVersion"):
            await Discovery(answers).find(api_version, "Web")

        assert answers.paths == []


class TestCancellation:
    async def test_a_cancelled_caller_does_not_affect_the_others(self) -> None:
        answers = Answers([_WEB])
        answers.gate = asyncio.Event()
        discovery = Discovery(answers)
        first = asyncio.create_task(discovery.find("v1", "Web"))
        await answers.asked.wait()
        second = asyncio.create_task(discovery.find("v1", "Web"))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        answers.gate.set()

        assert (await second).plural == "webs"
        assert len(answers.paths) == 1

    async def test_a_failure_without_a_waiting_caller_is_not_reported_by_asyncio(self) -> None:
        lost: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: lost.append(context))
        answers = Answers(ServerError("unavailable", code=503))
        answers.gate = asyncio.Event()
        discovery = Discovery(answers)
        caller = asyncio.create_task(discovery.find("v1", "Web"))
        await answers.asked.wait()
        caller.cancel()
        await asyncio.gather(caller, return_exceptions=True)
        answers.gate.set()
        await asyncio.wait(list(discovery._in_flight.values()))
        await asyncio.sleep(0)
        del discovery, caller

        assert lost == []

    async def test_closing_cancels_requests_in_flight(self) -> None:
        """The caller was not cancelled, so it gets an error instead of a cancellation."""
        answers = Answers([_WEB])
        answers.gate = asyncio.Event()
        discovery = Discovery(answers)
        caller = asyncio.create_task(discovery.find("v1", "Web"))
        await answers.asked.wait()
        await discovery.close()
        with pytest.raises(ServerError, match="closed"):
            await caller

        assert discovery._in_flight == {}


async def test_a_forgotten_group_version_is_requested_again() -> None:
    answers = Answers([_WEB], [{**_WEB, "name": "spiders"}])
    discovery = Discovery(answers)
    await discovery.find("v1", "Web")
    discovery.forget("v1")
    discovery.forget("never/known")

    assert (await discovery.find("v1", "Web")).plural == "spiders"
