"""Comparison with recorded responses and table cells of a real API server.

`scripts/record/http_responses.py` records the responses to the requests in `asked.json`.
"""

import json
import re
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from ocf_server import EmbeddedCluster
from ocf_server.http.resource_catalog import ServedResource, TableColumn, builtin_kinds
from ocf_server.http.tables import cells

Client = Callable[..., Awaitable[Any]]

RECORDED: Final = Path(__file__).parent / "recorded"
CUSTOM: Final = "recorded.example.com/v1"


def load(name: str) -> Any:
    return json.loads((RECORDED / name).read_text())


def shop() -> ServedResource:
    """Return the recorded custom kind, built from its definition."""
    definition = next(row["object"] for row in load("tables.json") if row["object"]["kind"].startswith("Custom"))
    found = definition["spec"]["versions"][0]["additionalPrinterColumns"]
    columns = [TableColumn(one["name"], one["type"], path=one["jsonPath"]) for one in found]
    name = TableColumn("Name", "string", "name")
    return ServedResource(
        "recorded.example.com", "v1", "Shop", "shops", "shop", True, (), columns=(name, *columns), custom=True
    )


KINDS: Final = {(kind.api_version, kind.kind): kind for kind in (*builtin_kinds(), shop())}


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=f"{row['object']['kind']} {row['object']['metadata']['name']}")
        for row in load("tables.json")
    ],
)
def test_cells_equal_those_of_a_real_api_server(row: dict[str, Any]) -> None:
    kind = KINDS[row["object"]["apiVersion"], row["object"]["kind"]]
    assert [column.name for column in kind.columns] == row["columns"]
    assert cells(kind, row["object"], datetime.fromisoformat(row["now"])) == row["cells"]


DEPLOYMENT: Final = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "recorded"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}},
    },
}
DAEMON_SET: Final = {**DEPLOYMENT, "kind": "DaemonSet"}

DIFFERENT_TEXT: Final = frozenset(
    {
        "a continue token that is none",
        "a field selector that cannot be read",
        "a label selector that cannot be read",
        "a watch with a selector that cannot be read",
        "an alias bomb",
        "an apply of an unknown field",
        "an apply that cannot be read",
        "unknown fields of a patch, strictly",
        "unknown fields, strictly",
        "yaml that cannot be read",
    }
)
"""Requests that are rejected with the same status and reason as by a real API server, but with a different message."""


@pytest_asyncio.fixture
async def prepared(ask: Client, cluster: EmbeddedCluster) -> Client:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "recorded"}}
    there = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "there", "namespace": "recorded"}}
    for manifest in (namespace, there, DEPLOYMENT, DAEMON_SET):
        await cluster.create(manifest, field_manager="test")
    return ask


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in load("refusals.json")[1:]])
async def test_responses_equal_those_of_a_real_api_server(row: dict[str, Any], prepared: Client) -> None:
    headers = {"User-Agent": "recorder/1", **row.get("headers", {})}
    kind = headers.pop("Content-Type", "")
    reply = await prepared(row["method"], row["path"], row.get("body"), kind=kind, **headers)
    assert reply.status == row["status"]
    assert sorted(reply.warnings) == sorted(row["warnings"])
    assert same(reply.text, row["answer"], same_text=row["id"] not in DIFFERENT_TEXT)


async def test_options_and_reviews_are_read_as_by_a_real_api_server(prepared: Client) -> None:
    different = []
    for row in load("options.json"):
        headers = dict(row.get("headers", {}))
        reply = await prepared(row["method"], row["path"], row.get("body"), kind=headers.pop("Content-Type", ""))
        if (reply.status, answer_of(reply.text)) != (row["status"], answer_of(json.dumps(row["answer"]))):
            different.append((row, reply.status, reply.text))
    assert not different


def answer_of(text: str) -> Any:
    """Return the status in a response; of objects, lists and reviews only the kind."""
    found = json.loads(masked(text))
    return found if found["kind"] == "Status" else found["kind"]


def same(text: str, recorded: Any, *, same_text: bool) -> bool:
    """Compare a response with a recorded one, without values that differ between runs."""
    if isinstance(recorded, str):
        return text == recorded
    if recorded.get("kind") != "Status":
        found = json.loads(text)
        return all(found[name] == recorded[name] for name in ("apiVersion", "kind"))
    # Message and details contain the text of a status.
    hidden = () if same_text else ("message", "details")
    shown = [
        {name: value for name, value in one.items() if name not in hidden}
        for one in (json.loads(masked(text)), json.loads(masked(json.dumps(recorded))))
    ]
    assert shown[0] == shown[1]
    assert same_text or json.loads(text) != recorded, (
        "the text now equals that of a real API server: remove the request from the list"
    )
    return True


def masked(text: str) -> str:
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "UID", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text)
    return re.sub(r"(current: |resourceVersion\W+)\d+", r"\1N", text)
