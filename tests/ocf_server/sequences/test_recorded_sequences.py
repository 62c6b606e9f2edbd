"""Sequences of requests, with the answers of a real API server (1.36.3), recorded by `scripts/record/sequences.py`."""

import gzip
import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from ocf.objects import Manifest
from ocf_server import EmbeddedCluster
from ocf_server.http import serving
from tests.ocf_server.sequences.conversion_webhook import response

RECORDED = Path(__file__).parent / "recorded"
# What admission plugins of a real API server set, which the embedded one does not have.
PLUGINS = ("tolerations", "priority", "preemptionPolicy")
MASKED = ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")
UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
CALL = re.compile(r"(failed calling webhook \"[^\"]*\": failed to call webhook: ).*")
SYNTAX = re.compile(r"(: Syntax error: )[^\n]*")
TYPE = re.compile(r"(?<=selfType)[0-9]+")


def masked(value: Any) -> Any:
    """Replace what differs between servers: uids, versions, times, and texts of network and parser."""
    if isinstance(value, dict):
        if isinstance(value.get("metadata"), dict):
            value = {**value, "metadata": _masked_metadata(value["metadata"])}
        if value.get("kind") == "Pod" and "spec" in value:
            spec = {name: item for name, item in value["spec"].items() if name not in PLUGINS}
            value = {**value, "spec": spec}
        if isinstance(value.get("causes"), list):
            # A real API server lists the conflicts of an apply in no order.
            value = {**value, "causes": sorted(value["causes"], key=lambda cause: json.dumps(cause, sort_keys=True))}
        return {name: "*" if name == "uid" else masked(item) for name, item in value.items()}
    if isinstance(value, list):
        return [masked(item) for item in value]
    if not isinstance(value, str):
        return value
    for pattern, shown in ((UID, "*"), (CALL, r"\1*"), (SYNTAX, r"\1*"), (TYPE, "")):
        value = pattern.sub(shown, value)
    return value


def _masked_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    out = {name: "*" if name in MASKED else item for name, item in metadata.items()}
    if "managedFields" in metadata:
        entries = [{name: item for name, item in each.items() if name != "time"} for each in metadata["managedFields"]]
        # The entries are ordered by their times.
        out["managedFields"] = sorted(entries, key=lambda entry: json.dumps(entry, sort_keys=True))
    return out


@dataclass(frozen=True)
class Client:
    """Sends recorded requests to the embedded server."""

    url: str
    session: aiohttp.ClientSession

    async def send(self, request: Mapping[str, Any]) -> dict[str, Any]:
        body = None if request["body"] is None else json.dumps(request["body"])
        headers = {"Content-Type": request["kind"], "Accept": "application/json", "User-Agent": "recorder/1"}
        async with self.session.request(
            request["method"], self.url + request["path"], data=body, headers=headers
        ) as answer:
            return {
                "status": answer.status,
                "warnings": answer.headers.getall("Warning", []),
                "answer": json.loads(await answer.read()),
            }

    async def namespace(self, name: str) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await self.send({"method": "POST", "path": "/api/v1/namespaces", "body": body, "kind": "application/json"})


@pytest_asyncio.fixture
async def client() -> AsyncIterator[Client]:
    async with serving(EmbeddedCluster()) as server, aiohttp.ClientSession() as session:
        yield Client(server.url, session)


def recorded(name: str) -> list[dict[str, Any]]:
    text = gzip.decompress((RECORDED / f"{name}.jsonl.gz").read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


def _brief(value: Any) -> Any:
    return value.get("message", value) if isinstance(value, dict) else value


def _texts(value: Any) -> list[str]:
    causes = value.get("details", {}).get("causes", []) if isinstance(value, dict) else []
    return [f"{cause.get('field')}: {cause.get('message')}" for cause in causes]


def _shown(real: Any, ours: Any) -> tuple[Any, Any]:
    """Return what differs in two answers: of several errors only those of one of them."""
    before, after = _texts(real), _texts(ours)
    if not before or not after or before == after:
        return _brief(real), _brief(ours)
    return [text for text in before if text not in after], [text for text in after if text not in before]


async def differences(client: Client, case: Mapping[str, Any]) -> list[str]:
    """Replay a case, and return how the answers differ."""
    found: list[str] = []
    version = ""
    for request in (*case["setup"], *case["requests"]):
        real = masked({name: request[name] for name in ("status", "warnings", "answer")})
        answer = await client.send(json.loads(json.dumps(request).replace("$rv", version)))
        version = answer["answer"].get("metadata", {}).get("resourceVersion") or version
        ours = masked(answer)
        if ours != real:
            parts = [name for name in real if ours[name] != real[name]]
            sides = {name: _shown(real[name], ours[name]) for name in parts}
            shown = "".join(f"\n  real {name}: {one}\n  ours {name}: {two}" for name, (one, two) in sides.items())
            found.append(f"{case['title']}: {request['method']} {request['path']}{shown}")
    return found


@pytest.mark.parametrize("name", ["policies", "mutations"])
async def test_admission_policies_and_match_conditions(client: Client, name: str) -> None:
    cases = recorded(name)
    for case in cases:
        if case["namespace"]:
            await client.namespace(case["namespace"])
    found = [text for case in cases for text in await differences(client, case)]
    assert not found, f"{len(found)} differences:\n" + "\n".join(found)


async def test_expressions(client: Client) -> None:
    """Values of valid expressions, the errors of their evaluation, and those of invalid expressions."""
    found: list[str] = []
    for case in recorded("cel"):
        if case["namespace"]:
            await client.namespace(case["namespace"])
        found += await differences(client, case)
    assert not found, f"{len(found)} differences:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "name",
    [
        # The versions of request and storage both prune and default; managers are compared in all versions.
        pytest.param("versions", id="versions with different schemas"),
        pytest.param("statuses", id="updates of the status of Jobs"),
        pytest.param("pod_statuses", id="updates of the status of Pods"),
    ],
)
async def test_writes(client: Client, name: str) -> None:
    found: list[str] = []
    for case in recorded(name):
        if case["namespace"]:
            await client.namespace(case["namespace"])
        found += await differences(client, case)
    assert not found, f"{len(found)} differences:\n" + "\n".join(found)


async def test_warnings(client: Client) -> None:
    """Warnings about objects of built-in and custom kinds; the answers themselves are compared elsewhere."""
    found: list[str] = []
    await client.namespace("warnings")
    for case in recorded("warnings"):
        for request in (*case["setup"], *case["requests"]):
            answer = await client.send(request)
            real, ours = ((each["status"], sorted(each["warnings"])) for each in (request, answer))
            if ours != real:
                found.append(f"{case['title']}: {request['method']} {request['path']}\n  real {real}\n  ours {ours}")
    assert not found, f"{len(found)} differences:\n" + "\n".join(found)


class ConversionWebhook:
    """Responds as the webhook did that the real API server called."""

    async def ask(self, webhook: Mapping[str, Any], review: Manifest, *, seconds: float) -> Any:
        del seconds
        return response(webhook["clientConfig"]["url"], review)


async def test_conversion_webhooks() -> None:
    cases = json.loads(json.dumps(recorded("conversions")))
    found: list[str] = []
    async with (
        serving(EmbeddedCluster(admission=ConversionWebhook())) as server,
        aiohttp.ClientSession() as session,
    ):
        client = Client(server.url, session)
        await client.namespace("conversion")
        for case in cases:
            config = case["setup"][0]["body"]["spec"]["conversion"]["webhook"]["clientConfig"]
            config["url"] = f"https://127.0.0.1:1/{config.pop('WEBHOOK')}"
            await client.send(case["setup"][0])
            found += await differences(client, {**case, "setup": []})
    assert not found, f"{len(found)} differences:\n" + "\n".join(found)
