"""Record what a real API server makes of definitions of custom kinds, drawn and of other projects, and of objects.

    python -m scripts.record.corpus                      # records tests/ocf_server/corpus/recorded
    python -m scripts.record.corpus foreign              # records those of other projects alone
    python -m scripts.record.corpus --compare FILE       # compares definitions and objects of other projects

The file for `--compare` is JSON: `definitions` by name, each with `from` and `definition`, and `objects`, each with
`definition`, the name, and `object`. Nothing of it is recorded: the numbers and the differences by kind are printed.
"""

import argparse
import asyncio
import gzip
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import aiohttp

from ocf.testing.envtest import ControlPlane
from ocf_server import EmbeddedCluster
from ocf_server.http import serving
from scripts.record.sequences import Server
from tests.ocf_server.corpus.requests import (
    CREATED,
    DEFINITIONS,
    NAMESPACE,
    Definition,
    Json,
    Request,
    facts,
    filled,
    version_of,
)
from tests.ocf_server.corpus.test_corpus import FOLDER, SETS, Client

_SECONDS_UNTIL_SERVED: Final = 20.0


def _send(server: Server, request: Request, version: str = "") -> tuple[Json, str]:
    body = filled(request.body, version)
    sent = server.send({"method": request.method, "path": request.path, "body": body, "kind": request.kind})
    return facts(sent["status"], sent["warnings"], sent["answer"]), version_of(sent["answer"])


def real_answers(server: Server, definitions: Sequence[Definition]) -> list[list[Json]]:
    """Return the facts of the answers of a real API server, those of the definition first."""
    created = [_send(server, each.create)[0] for each in definitions]
    time.sleep(_SECONDS_UNTIL_SERVED)
    answers: list[list[Json]] = []
    for definition, first in zip(definitions, created, strict=True):
        found, version = [first], ""
        for request in definition.requests if first["code"] == CREATED else ():
            answer, last = _send(server, request, version)
            version = last or version
            found.append(answer)
        answers.append(found)
    return answers


def _namespace(name: str) -> Request:
    return Request("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def _of_others(text: str) -> list[Definition]:
    """Return definitions and objects of other projects as requests."""
    given = json.loads(text)
    requests: dict[str, list[Request]] = {name: [] for name in given["definitions"]}
    for index, each in enumerate(given["objects"]):
        spec = given["definitions"][each["definition"]]["definition"]["spec"]
        place = f"/namespaces/{NAMESPACE}" if spec["scope"] == "Namespaced" else ""
        path = f"/apis/{each['object']['apiVersion']}{place}/{spec['names']['plural']}"
        body = {**each["object"], "metadata": {**each["object"].get("metadata", {}), "name": f"o{index}"}}
        body["metadata"].pop("namespace", None)
        requests[each["definition"]].append(Request("POST", path, body))
    found = []
    for name, each in given["definitions"].items():
        definition = dict(each["definition"])
        definition.pop("status", None)
        spec = dict(definition["spec"])
        if (spec.get("conversion") or {}).get("strategy") == "Webhook":
            # Their webhooks do not run.
            spec.pop("conversion")
        create = Request("POST", DEFINITIONS, {**definition, "spec": spec})
        found.append(Definition(create, tuple(requests[name])))
    return found


async def our_answers(definitions: Iterable[Definition]) -> list[list[Json]]:
    """Return the facts of the answers of the embedded server."""
    async with serving(EmbeddedCluster(namespaces=[NAMESPACE])) as server, aiohttp.ClientSession() as session:
        return [await Client(server.url, session).answers(each) for each in definitions]


def differences(real: Sequence[Sequence[Json]], ours: Sequence[Sequence[Json]]) -> tuple[Counter[str], list[Any]]:
    """Return the numbers of answers that are the same or differ, by what differs, and those that differ."""
    counts: Counter[str] = Counter()
    listed: list[Any] = []
    for index, (theirs, found) in enumerate(zip(real, ours, strict=True)):
        for place, (one, other) in enumerate(zip(theirs, found, strict=False)):
            parts = [part for part in {**one, **other} if one.get(part) != other.get(part)]
            counts["same" if not parts else parts[0]] += 1
            if parts:
                listed.append((index, place, {part: (one.get(part), other.get(part)) for part in parts}))
    return counts, listed


def compared(definitions: Sequence[Definition]) -> list[list[Json]]:
    """Print how the embedded server differs from a real one; return the answers of the latter."""
    with ControlPlane() as plane:
        server = Server(plane.kubeconfig, {})
        _send(server, _namespace(NAMESPACE))
        real = real_answers(server, definitions)
    counts, listed = differences(real, asyncio.run(our_answers(definitions)))
    for index, place, parts in listed[:200]:
        print(definitions[index].name, place, json.dumps(parts)[:600])
    print(dict(counts))
    return real


def main() -> int:
    """Record, or compare; return the exit status."""
    parser = argparse.ArgumentParser(description="record answers about definitions and objects")
    parser.add_argument("sets", nargs="*", choices=[*SETS, []], metavar="SET", help="drawn or foreign; default: both")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="compare definitions and objects of a file")
    given = parser.parse_args()
    if given.compare:
        compared(_of_others(given.compare.read_text()))
        return 0
    for name in given.sets or SETS:
        make, number = SETS[name]
        definitions = [make(index) for index in range(number)]
        pairs = zip(definitions, compared(definitions), strict=True)
        lines = [{"digest": each.digest, "answers": found} for each, found in pairs]
        text = "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines)
        (FOLDER / f"{name}.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
