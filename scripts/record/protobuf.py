"""Record objects that a real API server answers, as JSON and as protobuf, for the tests to hold our encoder to it.

    python -m scripts.record.protobuf https://127.0.0.1:6443 TOKEN

`scripts/record/http_responses.py` creates the objects, so it has to be run before on the same server. A few objects
of each built-in kind and the documents of discovery are written to `tests/ocf_server/http/recorded/protobuf.jsonl.gz`.
"""

import argparse
import base64
import gzip
import http.client
import json
from collections.abc import Iterator
from typing import Any, Final

from scripts.record.http_responses import FOLDER, Server

Json = dict[str, Any]

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
NOT_STORED: Final = ("componentstatuses",)
OBJECTS: Final = 4
"""Number of objects of each kind."""


def recorded(server: Server) -> Iterator[Json]:
    """Yield each document: its path, its JSON, and its protobuf in base64."""
    groups = server.ask("GET", "/apis")["groups"]
    roots = ["/api/v1", *(f"/apis/{version['groupVersion']}" for group in groups for version in group["versions"])]
    for root in ("/api", "/apis", "/apis/apps", *roots):
        yield from both(server, root)
    for root in roots:
        for resource in server.ask("GET", root)["resources"]:
            if "list" in resource["verbs"] and resource["name"] not in NOT_STORED:
                yield from objects(server, f"{root}/{resource['name']}", root)


def objects(server: Server, path: str, root: str) -> Iterator[Json]:
    """Yield the list of a kind, and some of its objects."""
    found = server.ask("GET", f"{path}?limit={OBJECTS}")
    for item in found["items"]:
        metadata = item["metadata"]
        where = path.removeprefix(root)
        space = f"/namespaces/{metadata['namespace']}" if metadata.get("namespace") else ""
        yield from both(server, f"{root}{space}{where}/{metadata['name']}")
    if found["items"]:
        yield from both(server, f"{path}?limit=1")


def both(server: Server, path: str) -> Iterator[Json]:
    """Yield a document in both encodings, of one state of the server; nothing for a custom kind."""
    while True:
        before = server.ask("GET", path)
        status, _, encoded = server.fetch("GET", path, None, {"Accept": PROTOBUF})
        if status != http.client.OK:
            return
        if server.ask("GET", path) == before:
            yield {"path": path, "json": before, "protobuf": base64.b64encode(encoded).decode()}
            return


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("token")
    arguments = parser.parse_args()
    found = [json.dumps(each, sort_keys=True) for each in recorded(Server(arguments.url, arguments.token))]
    file = FOLDER / "protobuf.jsonl.gz"
    file.write_bytes(gzip.compress("\n".join(found).encode(), compresslevel=9, mtime=0))
    print(f"protobuf: {len(found)} documents, {file.stat().st_size} bytes")


if __name__ == "__main__":
    main()
