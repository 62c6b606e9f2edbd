"""Record the answers of a real API server to sequences of requests, which the tests replay on the embedded one.

    python -m scripts.record.sequences policies

Each set of cases is a module with a function `cases`. All cases are prepared before the first request is sent, since an
API server takes up to a second to enforce a new policy.
"""

import argparse
import base64
import gzip
import http.client
import importlib
import json
import ssl
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from ocf.testing.envtest import ControlPlane

Json = dict[str, Any]

FOLDER: Final = Path(__file__).parents[2] / "tests" / "ocf_server" / "sequences" / "recorded"
SETS: Final = {
    "cel": "cel_cases",
    "conversions": "conversion_cases",
    "mutations": "admission_cases.mutations",
    "pod_statuses": "pod_status_cases",
    "policies": "admission_cases.policies",
    "statuses": "status_cases",
    "versions": "version_cases",
    "warnings": "warning_cases",
}
SECONDS_UNTIL_ENFORCED: Final = 6.0


class Server:
    """Sends requests as the user of a kubeconfig."""

    def __init__(self, kubeconfig: Path, webhook: Json) -> None:
        self._webhook = webhook
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        context.load_cert_chain(user["client-certificate"], user["client-key"])
        self._connection = http.client.HTTPSConnection(urlsplit(cluster["server"]).netloc, context=context, timeout=30)

    def send(self, request: Json) -> Json:
        """Send a request, and return it with its answer."""
        body = None if request["body"] is None else json.dumps(self._addressed(request["body"]))
        headers = {"Content-Type": request["kind"], "Accept": "application/json", "User-Agent": "recorder/1"}
        self._connection.request(request["method"], request["path"], body=body, headers=headers)
        answer = self._connection.getresponse()
        text = answer.read().decode()
        warnings = answer.headers.get_all("Warning") or []
        return {**request, "status": answer.status, "warnings": warnings, "answer": json.loads(text)}

    def _addressed(self, value: Any) -> Any:
        """Fill in the client configuration of the webhook."""
        if isinstance(value, list):
            return [self._addressed(each) for each in value]
        if not isinstance(value, dict):
            return value
        if "WEBHOOK" in value:
            return {**self._webhook, "url": f"{self._webhook['url']}/{value['WEBHOOK']}"}
        return {name: self._addressed(each) for name, each in value.items()}


def recorded(server: Server, cases: list[Json]) -> list[Json]:
    """Return the cases with the answers."""
    done: list[Json] = []
    for case in cases:
        if case["namespace"]:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": case["namespace"]}}
            server.send({"method": "POST", "path": "/api/v1/namespaces", "body": body, "kind": "application/json"})
        done.append({**case, "setup": [server.send(request) for request in case["setup"]]})
    time.sleep(SECONDS_UNTIL_ENFORCED)
    return [{**case, "requests": answered(server, case["requests"])} for case in done]


def answered(server: Server, requests: list[Json]) -> list[Json]:
    """Send the requests of a case; `$rv` in one stands for the resourceVersion in the last answer with one."""
    found: list[Json] = []
    version = ""
    for request in requests:
        answer = server.send(json.loads(json.dumps(request).replace("$rv", version)))
        version = answer["answer"].get("metadata", {}).get("resourceVersion") or version
        found.append({**answer, **request})
    return found


def main() -> None:
    """Record the answers for one set of cases."""
    parser = argparse.ArgumentParser(description="record answers of a real API server to sequences of requests")
    parser.add_argument("name", choices=SETS)
    given = parser.parse_args()
    module = importlib.import_module(f"scripts.record.{SETS[given.name]}")
    with ControlPlane() as plane, ExitStack() as stack:
        config: Json = {}
        if hasattr(module, "serving"):
            bundle = base64.b64encode(plane.authority.read_bytes()).decode()
            config = {"caBundle": bundle, "url": stack.enter_context(module.serving(plane))}
        cases = recorded(Server(plane.kubeconfig, config), list(module.cases()))
    FOLDER.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{json.dumps(case, separators=(',', ':'))}\n" for case in cases)
    (FOLDER / f"{given.name}.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
    print(f"{len(cases)} cases, {sum(len(case['setup']) + len(case['requests']) for case in cases)} requests")


if __name__ == "__main__":
    main()
