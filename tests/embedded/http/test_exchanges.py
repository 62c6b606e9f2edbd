"""Comparison with sequences of requests and responses, recorded from a real API server by `record_exchanges`.

Bodies are compared completely, except for values that differ between any two runs: uids, versions, times and tokens.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from ocf.embedded import EmbeddedCluster

Json = dict[str, Any]
Client = Callable[..., Awaitable[Any]]

RECORDED: Final = json.loads((Path(__file__).parent / "recorded" / "exchanges.json").read_text())
NAMESPACE: Final = "exchange"

MASKS: Final = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"(\"resourceVersion\": \")\d+"), r"\1N"),
    (re.compile(r"\"recorder\"|\"Python\""), '"MANAGER"'),
    (re.compile(r"\"eyJ[\w.-]+\""), '"TOKEN"'),
)


@pytest.fixture
def cluster() -> EmbeddedCluster:
    return EmbeddedCluster(now=lambda: datetime(2026, 1, 1, 12, tzinfo=UTC))


@pytest.mark.parametrize("name", [pytest.param(name, id=name) for name in RECORDED])
async def test_responses_equal_those_of_a_real_api_server(name: str, ask: Client) -> None:
    await ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, User_Agent="recorder/1")
    differences = [line async for line in compared(RECORDED[name], ask)]
    assert not differences, "\n".join(differences)


async def compared(rows: list[Json], ask: Client) -> AsyncIterator[str]:
    """Yield the differences; watches that follow each other are run at the same time, since they last a second."""
    waiting: list[Json] = []
    for row in [*rows, None]:
        if row is not None and "timeoutSeconds" in row["path"]:
            waiting.append(row)
            continue
        for line in await asyncio.gather(*(difference(one, ask) for one in waiting)):
            if line:
                yield line
        waiting = []
        if row is not None and (line := await difference(row, ask)):
            yield line


async def difference(row: Json, ask: Client) -> str:
    """Return how the response to a request differs from the recorded one; empty if it does not."""
    body = row.get("body")
    if body is not None:
        body = inside(body if isinstance(body, str) else json.dumps(body))
    kind = row.get("type", "application/json")
    headers = {"Accept": row.get("accept", "application/json"), "User-Agent": "recorder/1"}
    reply = await ask(row["method"], inside(row["path"]), body, kind=kind, **headers)
    seen = (reply.status, sorted(reply.warnings), masked(read(reply.text)))
    wanted = (row["status"], sorted(row.get("warnings", ())), masked(row["answer"]))
    if seen == wanted:
        return ""
    return f"{row['method']} {row['path']} {row.get('accept', '')} {body or ''}\n  real: {wanted}\n  ours: {seen}"


def inside(text: str) -> str:
    return text.replace("{ns}", NAMESPACE)


def read(text: str) -> Any:
    for parse in (json.loads, lambda lines: [json.loads(line) for line in lines.splitlines()]):
        try:
            return parse(text)
        except ValueError:
            continue
    return text


def plain(answer: Any) -> Any:
    """Return a body as values, also one in YAML: its line breaks do not count."""
    return yaml.safe_load(inside(answer)) if isinstance(answer, str) and ": " in answer else answer


def masked(answer: Any) -> str:
    text = inside(json.dumps(ordered(plain(answer)), sort_keys=True, default=str))
    for pattern, replacement in MASKS:
        text = pattern.sub(replacement, text)
    return text


def ordered(value: Any) -> Any:
    """Return a body whose managed fields are text, because their order counts."""
    if isinstance(value, dict):
        return {key: json.dumps(one) if key == "fieldsV1" else ordered(one) for key, one in value.items()}
    return [ordered(item) for item in value] if isinstance(value, list) else value
