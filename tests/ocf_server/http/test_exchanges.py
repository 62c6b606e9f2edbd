"""Comparison with sequences of requests and responses, recorded from a real API server by `record_exchanges`.

Bodies are compared completely, except for values that differ between any two runs: uids, versions, times and tokens.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from ocf_server import EmbeddedCluster

Json = dict[str, Any]
Client = Callable[..., Awaitable[Any]]

RECORDED: Final = json.loads((Path(__file__).parent / "recorded" / "exchanges.json").read_text())
NAMESPACE: Final = "exchange"

NOT_COMPARED: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "Pod": {"spec": ("preemptionPolicy", "priority", "tolerations")},  # of admission plugins
    "CertificateSigningRequest": {"spec": ("username", "uid")},  # the user of the request
    "TokenReview": {"metadata": ("managedFields",)},
}
MASKS: Final = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"(\"resourceVersion\": \")\d+"), r"\1N"),
    (re.compile(r"\"\d+s\""), '"AGE"'),
    (re.compile(r"in record \(\d+\)"), "in record (N)"),
    (re.compile(r"\"recorder\"|\"Python\""), '"MANAGER"'),
    (re.compile(r"eyJ[\w.-]{40,}"), "TOKEN"),
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
    seen = {"status": reply.status, "warnings": sorted(reply.warnings), "body": masked(read(reply.text))}
    wanted = {"status": row["status"], "warnings": sorted(row.get("warnings", ())), "body": masked(row["answer"])}
    lines = list(differing(wanted, seen, ""))
    request = f"{row['method']} {row['path']} {row.get('accept', '')} {(body or '')[:SHOWN]}"
    return "\n  ".join([request, *lines]) if lines else ""


SHOWN: Final = 300


def differing(wanted: Any, seen: Any, path: str) -> Iterator[str]:
    """Yield one line for each value that differs."""
    if isinstance(wanted, dict) and isinstance(seen, dict):
        for key in {**wanted, **seen}:
            yield from differing(wanted.get(key, "(none)"), seen.get(key, "(none)"), f"{path}.{key}")
    elif isinstance(wanted, list) and isinstance(seen, list) and len(wanted) == len(seen):
        for index, pair in enumerate(zip(wanted, seen, strict=True)):
            yield from differing(*pair, f"{path}[{index}]")
    elif wanted != seen:
        yield f"{path}: real {str(wanted)[:SHOWN]}, ours {str(seen)[:SHOWN]}"


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
    is_yaml = isinstance(answer, str) and ": " in answer and not answer.startswith("[+]")
    return yaml.safe_load(inside(answer)) if is_yaml else answer


def masked(answer: Any) -> Any:
    text = inside(json.dumps(ordered(plain(answer)), default=str))
    for pattern, replacement in MASKS:
        text = pattern.sub(replacement, text)
    return json.loads(text)


def ordered(value: Any) -> Any:
    """Return a body whose managed fields are text, because their order counts."""
    if isinstance(value, dict):
        hidden = NOT_COMPARED.get(value.get("kind", ""), {})
        for part, names in hidden.items():
            value = {**value, part: {key: one for key, one in value.get(part, {}).items() if key not in names}}
        return {key: json.dumps(one) if key == "fieldsV1" else ordered(one) for key, one in value.items()}
    return [ordered(item) for item in value] if isinstance(value, list) else value
