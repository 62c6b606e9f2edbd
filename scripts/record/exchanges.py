"""Record the responses of a real API server to sequences of requests, for the tests to replay on the embedded one.

    python scripts/record/exchanges.py https://127.0.0.1:6443 TOKEN

The sequences are in `tests/ocf_server/http/recorded/exchanges.json`, and the responses are written beside the requests.
`{ns}` in both is the namespace, one for each sequence. The objects are not deleted, so use a server that can be thrown
away.
"""

import argparse
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from scripts.record.http_responses import FOLDER, Server

Json = dict[str, Any]

FILE: Final = FOLDER / "exchanges.json"
PLACEHOLDER: Final = "{ns}"
TOKEN: Final = re.compile(r"eyJ[\w.-]{40,}")
_SETTLED_SECONDS: Final = 2


def recorded(server: Server, requests: list[Json], namespace: str) -> Iterator[Json]:
    """Send the requests of a sequence; yield each with its response."""
    server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    for request in requests:
        asked: Json = {name: request[name] for name in ("method", "path", "accept", "type", "body") if name in request}
        body = request.get("body")
        text = body if body is None or isinstance(body, str) else json.dumps(body).replace(PLACEHOLDER, namespace)
        headers = {"Accept": request.get("accept", "application/json")}
        if text is not None:
            headers["Content-Type"] = request.get("type", "application/json")
        status, warnings, answer = server.send(
            request["method"], request["path"].replace(PLACEHOLDER, namespace), text, headers
        )
        answer = TOKEN.sub("TOKEN", answer.replace(namespace, PLACEHOLDER))
        yield {**asked, "status": status, **({"warnings": warnings} if warnings else {}), "answer": own(read(answer))}
        if request["method"] == "POST" and request["path"].endswith("/customresourcedefinitions"):
            time.sleep(_SETTLED_SECONDS)


def own(answer: Any) -> Any:
    """Return a list of groups without those that other recorders have defined on the same server."""
    if isinstance(answer, dict) and answer.get("kind") in GROUP_LISTS:
        field = GROUP_LISTS[answer["kind"]]
        kept = [one for one in answer[field] if not FOREIGN.search(one.get("name") or one["metadata"].get("name", ""))]
        return {**answer, field: kept}
    return answer


GROUP_LISTS: Final = {"APIGroupDiscoveryList": "items", "APIGroupList": "groups"}
FOREIGN: Final = re.compile(r"(?<!\.discovered)\.example\.com$")


def read(answer: str) -> Any:
    """Return a body: JSON values, the events of a watch as a list, or text."""
    try:
        return json.loads(answer)
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in answer.splitlines()]
    except ValueError:
        return answer


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("token")
    parser.add_argument("--only", nargs="*", help="names of the sequences to record; default: all")
    arguments = parser.parse_args()
    server = Server(arguments.url, arguments.token)
    sequences: dict[str, list[Json]] = json.loads(FILE.read_text())
    for name, requests in sequences.items():
        if arguments.only is None or name in arguments.only:
            sequences[name] = list(recorded(server, requests, f"exchange-{time.time_ns()}"))
            print(f"{name}: {len(requests)}")
    write(FILE, sequences)


def write(path: Path, sequences: dict[str, list[Json]]) -> None:
    """Write sequences with one line per request."""
    shown = [
        f"{json.dumps(name)}: [\n" + ",\n".join(json.dumps(request) for request in requests) + "\n]"
        for name, requests in sequences.items()
    ]
    path.write_text("{\n" + ",\n".join(shown) + "\n}\n")


if __name__ == "__main__":
    main()
