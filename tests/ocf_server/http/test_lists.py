"""Lists at a resource version and in pages, as the real API server and the embedded one answer them."""

import base64
import json
from typing import Any

import pytest

from tests.ocf_server.http.conftest import Either
from tests.support import eventually


async def created(either: Either, *names: str) -> str:
    """Create ConfigMaps; return the resource version after the last one."""
    version = ""
    for name in names:
        reply = await either.ask(
            "POST", f"{either.path}/configmaps", {"metadata": {"name": name, "labels": {"app": "web"}}}
        )
        version = reply.json["metadata"]["resourceVersion"]
    return version


async def listed(either: Either, query: str) -> tuple[list[str], dict[str, Any]]:
    """Return the names in a page, and its metadata."""
    found = (await either.ask("GET", f"{either.path}/configmaps?labelSelector=app%3Dweb&{query}")).json
    return [item["metadata"]["name"] for item in found["items"]], found["metadata"]


async def test_an_exact_list_is_answered_at_its_version(either: Either) -> None:
    version = await created(either, "a", "b")
    await either.ask("DELETE", f"{either.path}/configmaps/a")
    await created(either, "c")
    names, metadata = await listed(either, f"resourceVersion={version}&resourceVersionMatch=Exact")
    assert (names, metadata) == (["a", "b"], {"resourceVersion": version})
    newer = f"resourceVersion={version}&resourceVersionMatch=NotOlderThan"
    # The cache of a real API server may be as old as the version.
    await eventually(lambda: listed(either, newer), lambda page: page[0] == ["b", "c"])


async def test_a_page_is_exact_without_saying_so(either: Either) -> None:
    version = await created(either, "a", "b")
    await either.ask("DELETE", f"{either.path}/configmaps/a")
    names, metadata = await listed(either, f"resourceVersion={version}&limit=1")
    assert (names, metadata["resourceVersion"]) == (["a"], version)
    assert await listed(either, f"limit=1&continue={metadata['continue']}") == (["b"], {"resourceVersion": version})


async def test_pages_say_how_many_objects_remain(either: Either) -> None:
    await created(either, "a", "b", "c")
    whole = (await either.ask("GET", f"{either.path}/configmaps")).json
    page = (await either.ask("GET", f"{either.path}/configmaps?limit=1")).json["metadata"]
    assert page["remainingItemCount"] == len(whole["items"]) - 1
    assert "remainingItemCount" not in whole["metadata"]
    _, selected = await listed(either, "limit=1")
    assert "remainingItemCount" not in selected


def forged(**fields: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "%ff",
        forged(v="meta.k8s.io/v1", rv=0, start="a"),
        forged(v="meta.k8s.io/v1", rv=7),
        forged(v="meta.k8s.io/v1", rv="7", start="a"),
        forged(v="meta.k8s.io/v1", rv=float("inf"), start="a"),
        forged(v="meta.k8s.io/v1", rv=7, start={}),
        forged(v="meta.k8s.io/v2", rv=7, start="a"),
    ],
    ids=["no base64", "no text", "version 0", "no start", "a text", "infinite", "a map", "another encoding"],
)
async def test_a_forged_token_is_a_bad_request(token: str, either: Either) -> None:
    reply = await either.ask("GET", f"{either.path}/configmaps?limit=1&continue={token}")
    assert reply.status == 400
    assert reply.json["message"].startswith("invalid continue token: continue key is not valid")


async def test_a_token_has_a_version_of_its_own(either: Either) -> None:
    version = await created(either, "a", "b")
    _, metadata = await listed(either, "limit=1")
    query = f"limit=1&continue={metadata['continue']}&resourceVersion={version}"
    reply = await either.ask("GET", f"{either.path}/configmaps?{query}")
    message = "specifying resource version is not allowed when using continue"
    assert (reply.status, reply.json["message"]) == (400, message)
