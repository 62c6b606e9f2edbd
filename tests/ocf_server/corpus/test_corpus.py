"""Definitions of custom kinds, drawn and of other projects, and objects of them, with the answers of a real API server.

`scripts/record/corpus.py` records the answers.
"""

import gzip
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
import pytest_asyncio

from ocf_server import EmbeddedCluster
from ocf_server.http import serving
from tests.ocf_server.corpus.foreign import FOREIGN, foreign
from tests.ocf_server.corpus.requests import (
    CREATED,
    DRAWN,
    NAMESPACE,
    Definition,
    Json,
    Request,
    drawn,
    facts,
    filled,
    version_of,
)
from tests.requirements import Sampled

FOLDER: Final = Path(__file__).parent / "recorded"
SETS: Final[Mapping[str, tuple[Callable[[int], Definition], int]]] = {
    "drawn": (drawn, DRAWN),
    "foreign": (foreign, FOREIGN),
}
"""What returns a definition by its number, and how many there are."""


@dataclass(frozen=True)
class Client:
    """Sends the requests to the embedded server."""

    url: str
    session: aiohttp.ClientSession

    async def _send(self, request: Request, version: str = "") -> tuple[Json, str]:
        headers = {"Content-Type": request.kind, "Accept": "application/json", "User-Agent": "recorder/1"}
        body = json.dumps(filled(request.body, version))
        async with self.session.request(request.method, self.url + request.path, data=body, headers=headers) as answer:
            found = json.loads(await answer.read())
            return facts(answer.status, answer.headers.getall("Warning", []), found), version_of(found)

    async def answers(self, definition: Definition) -> list[Json]:
        """Return the facts of the answers, those of the definition first."""
        first, _ = await self._send(definition.create)
        found, version = [first], ""
        for request in definition.requests if first["code"] == CREATED else ():
            answer, last = await self._send(request, version)
            version = last or version
            found.append(answer)
        return found


@pytest_asyncio.fixture
async def client() -> AsyncIterator[Client]:
    async with (
        serving(EmbeddedCluster(namespaces=[NAMESPACE])) as server,
        aiohttp.ClientSession() as session,
    ):
        yield Client(server.url, session)


def recorded(name: str) -> list[dict[str, Any]]:
    text = gzip.decompress((FOLDER / f"{name}.jsonl.gz").read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


def difference(real: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that differ: the real one, and ours."""
    return {name: (real.get(name), ours.get(name)) for name in {**real, **ours} if real.get(name) != ours.get(name)}


@pytest.mark.parametrize("name", SETS)
def test_the_record_is_of_the_requests_that_are_drawn(name: str) -> None:
    make, number = SETS[name]
    assert [line["digest"] for line in recorded(name)] == [make(index).digest for index in range(number)]


@pytest.mark.matrix
@pytest.mark.parametrize("name", SETS)
async def test_answers_are_those_of_a_real_api_server(name: str, client: Client, sampled: Sampled) -> None:
    make, _ = SETS[name]
    different: list[dict[str, Any]] = []
    for number, line in sampled([*enumerate(recorded(name))]):
        definition = make(number)
        ours = await client.answers(definition)
        assert len(ours) == len(line["answers"]), f"definition {number}: {line['answers'][0]}, ours {ours[0]}"
        for index, (real, found) in enumerate(zip(line["answers"], ours, strict=True)):
            parts = difference(real, found)
            if parts:
                different.append({"definition": definition.name, "request": index, **parts})
    assert not different, f"{len(different)}: {json.dumps(different[:5])}"
