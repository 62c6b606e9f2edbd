"""Record what a real API server answers over HTTP, for the tests to hold the embedded one to it.

    python scripts/record/http_responses.py https://127.0.0.1:6443 TOKEN

Three files are written to `tests/ocf_server/http/recorded`. `tables.json`: objects in many states, and the cells in
which the server shows them. `refusals.json`: requests that make no sense, and what comes back. `options.json`: options
in queries and in bodies of deletes, and reviews of access, most of them invalid. The requests are beside them in
`asked.json`. The objects are not deleted, so use a server that can be thrown away.
"""

import argparse
import http.client
import json
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

Json = dict[str, Any]

FOLDER: Final = Path(__file__).parents[2] / "tests" / "ocf_server" / "http" / "recorded"
TABLE: Final = "application/json;as=Table;g=meta.k8s.io;v=v1"
NAMESPACE: Final = "recorded"


class Server:
    """Sends requests; certificates are not checked, the server is a local one."""

    def __init__(self, url: str, token: str) -> None:
        self._host = url.removeprefix("https://").rstrip("/")
        self._token = token
        self._context = ssl._create_unverified_context()  # noqa: S323, SLF001 (a throw-away server on loopback)

    def send(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> tuple[int, list[str], str]:
        """Send a request; return status, warnings and body."""
        status, warnings, answer = self.fetch(method, path, body, headers)
        return status, warnings, answer.decode()

    def fetch(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> tuple[int, list[str], bytes]:
        """Send a request; return status, warnings and the bytes of the body."""
        connection = http.client.HTTPSConnection(self._host, context=self._context, timeout=10)
        everything = {"Authorization": f"Bearer {self._token}", "User-Agent": "recorder/1", **headers}
        connection.request(method, path, body=body, headers=everything)
        answer = connection.getresponse()
        return answer.status, answer.headers.get_all("Warning") or [], answer.read()

    def ask(self, method: str, path: str, body: Any = None, accept: str = "application/json") -> Json:
        """Send JSON and return JSON; refusals are printed."""
        text = None if body is None else json.dumps(body)
        status, _, answer = self.send(method, path, text, {"Content-Type": "application/json", "Accept": accept})
        found: Json = json.loads(answer)
        if status >= http.client.BAD_REQUEST:
            print(method, path, status, found.get("message"))
        return found


def collection(server: Server, manifest: Json) -> str:
    """Return the path of the collection that an object belongs to."""
    version = manifest["apiVersion"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    for resource in server.ask("GET", root)["resources"]:
        if resource["kind"] == manifest["kind"] and "/" not in resource["name"]:
            space = f"/namespaces/{NAMESPACE}" if resource["namespaced"] else ""
            return f"{root}{space}/{resource['name']}"
    raise SystemExit(f"{version} {manifest['kind']} is not served")


def tables(server: Server, manifests: list[Json]) -> Iterator[Json]:
    """Create objects, give them the status that is wanted, and read their rows."""
    for manifest in manifests:
        path = collection(server, manifest)
        made = server.ask("POST", path, {key: value for key, value in manifest.items() if key != "delete"})
        if "metadata" not in made or "uid" not in made["metadata"]:
            continue
        name = made["metadata"]["name"]
        if "status" in manifest:
            made["status"] = {**made.get("status", {}), **manifest["status"]}
            server.ask("PUT", f"{path}/{name}/status", made)
        if manifest.get("delete"):
            server.ask("DELETE", f"{path}/{name}")
        if manifest["kind"] == "CustomResourceDefinition":
            time.sleep(2)
        found = server.ask("GET", f"{path}/{name}?includeObject=Object", accept=TABLE)
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        row = found["rows"][0]
        row["object"]["metadata"].pop("managedFields", None)
        columns = [column["name"] for column in found["columnDefinitions"]]
        yield {"now": now, "columns": columns, "cells": row["cells"], "object": row["object"]}


def refusals(server: Server, requests: list[Json]) -> Iterator[Json]:
    """Send requests and keep what comes back."""
    for request in requests:
        text = request.get("body")
        body = json.dumps(text) if text is not None and not isinstance(text, str) else text
        status, warnings, answer = server.send(request["method"], request["path"], body, request.get("headers", {}))
        parsed: Any = json.loads(answer) if answer.startswith("{") else answer
        yield {**request, "status": status, "warnings": warnings, "answer": parsed}


def options(server: Server, requests: list[Json]) -> Iterator[Json]:
    """Send requests and keep the errors that come back; of all other responses only the kind."""
    for row in refusals(server, requests):
        answer = row["answer"]
        yield row if answer["kind"] == "Status" else {**row, "answer": {"kind": answer["kind"]}}


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("token")
    arguments = parser.parse_args()
    server = Server(arguments.url, arguments.token)
    asked = json.loads((FOLDER / "asked.json").read_text())
    server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for name, found in (
        ("tables", list(tables(server, asked["objects"]))),
        ("refusals", list(refusals(server, asked["requests"]))),
        ("options", list(options(server, asked["options"]))),
    ):
        lines = ",\n".join(json.dumps(row, sort_keys=True) for row in found)
        (FOLDER / f"{name}.json").write_text(f"[\n{lines}\n]\n")
        print(f"{name}: {len(found)}")


if __name__ == "__main__":
    main()
