r"""Record the responses of a real API server to thousands of HPAs, for `tests/autoscaling/validation/test_corpus.py`.

    python -m scripts.record.hpa_corpus https://127.0.0.1:16443 TOKEN --gated https://127.0.0.1:16444 \
        --etcd http://127.0.0.1:12379

Every request is a dry run with strict field validation, so the server keeps nothing but the few objects that updates
start from, in a namespace of their own. `--gated` is a second server on the same etcd, with `HPAScaleToZero` switched
on and `HPAConfigurableTolerance` switched off. `--etcd` is needed for one object that no server of today would let in.
Without these two, the cases that need them are skipped.

The server has to run without the admission plugin `NamespaceLifecycle`, which would answer for a namespace that does
not exist before the validation can.
"""

import argparse
import base64
import http.client
import json
import lzma
import ssl
import sys
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from scripts.record.hpa_cases import BASES, OLDS, Case, Edit, Json, cases, edited

OUTPUT: Final = Path(__file__).parents[2] / "tests" / "autoscaling" / "validation" / "data" / "hpa_corpus.json.xz"
NAMESPACE: Final = "hpa-corpus"
QUERY: Final = "?dryRun=All&fieldValidation=Strict&fieldManager=corpus"
MADE_UP: Final = ("managedFields", "uid", "creationTimestamp", "resourceVersion", "generation")
"""Metadata of an answer that the server made up."""
RANDOM_END: Final = "xxxxx"
JUDGED: Final = (200, 201, 400, 422)


class Server:
    """One connection to an API server; certificates are not checked, the server is a local one."""

    def __init__(self, url: str, token: str) -> None:
        context = ssl._create_unverified_context()  # noqa: S323, SLF001 (a throw-away server on loopback)
        self._connection = http.client.HTTPSConnection(urllib.parse.urlsplit(url).netloc, context=context)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def send(self, method: str, path: str, body: Any = None) -> tuple[int, Json]:
        """Send a request; return the status and the answer."""
        text = None if body is None else json.dumps(body, ensure_ascii=False).encode(errors="surrogatepass")
        self._connection.request(method, path, text, self._headers)
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())


def path_of(namespace: str, name: str = "", subresource: str = "") -> str:
    """Return the path of HPAs, of one, or of a part of one."""
    parts = ["/apis/autoscaling/v2/namespaces", namespace, "horizontalpodautoscalers", name, subresource]
    return "/".join(urllib.parse.quote(part, safe="/" if part.startswith("/") else "") for part in parts if part)


def without_made_up(manifest: Json) -> Json:
    """Return an object without what the server made up."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in MADE_UP}
    return {**manifest, "metadata": metadata}


def prepare(server: Server, gated: Server | None, etcd: str) -> dict[str, Json]:
    """Make the objects that updates start from; return them as the server shows them."""
    server.send("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "app", "image": "x"}]}}
    deployment = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": deployment}
    server.send("POST", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments", web)
    found = {}
    for name, (base, edits) in OLDS.items():
        body = edited(BASES[base], (*edits, (("metadata", "name"), name)))
        if name == "odd" and etcd:
            put(etcd, f"/registry/horizontalpodautoscalers/{NAMESPACE}/{name}", body)
        elif name != "zero":
            server.send("POST", path_of(NAMESPACE), body)
        elif gated:
            gated.send("POST", path_of(NAMESPACE), body)
        if name == "deleting":
            server.send("DELETE", path_of(NAMESPACE, name))
        status, stored = server.send("GET", path_of(NAMESPACE, name))
        if status == http.client.OK:
            found[name] = stored
    return found


def put(etcd: str, key: str, body: Json) -> None:
    """Store an object past every check."""
    metadata = {**body["metadata"], "namespace": NAMESPACE, "uid": "0-0", "creationTimestamp": "2026-01-31T12:00:00Z"}
    written = json.dumps({**body, "metadata": metadata})
    pair = {"key": base64.b64encode(key.encode()).decode(), "value": base64.b64encode(written.encode()).decode()}
    request = urllib.request.Request(f"{etcd}/v3/kv/put", json.dumps(pair).encode())  # noqa: S310 (the caller's own)
    with urllib.request.urlopen(request):  # noqa: S310 (likewise)
        pass


def edits_of(case: Case) -> tuple[Edit, ...]:
    """Return the edits of a case; an update is named like the object it replaces."""
    kind, _, old = case.send.partition(":")
    return ((("metadata", "name"), old), *case.edits) if kind in {"update", "status"} else case.edits


def with_steady_name(answer: Json, body: Any) -> Json:
    """Return an answer in which the random end of a generated name is `xxxxx`."""
    metadata = body.get("metadata") if isinstance(body, dict) else None
    if not isinstance(metadata, dict) or metadata.get("name") or not isinstance(metadata.get("generateName"), str):
        return answer
    name: str = (answer.get("details") or answer.get("metadata") or {}).get("name", "")
    steady = f"{name[: -len(RANDOM_END)]}{RANDOM_END}"
    if not name:
        return answer
    return dict(json.loads(json.dumps(answer).replace(json.dumps(name)[1:-1], json.dumps(steady)[1:-1])))


def ask(server: Server, case: Case) -> tuple[int, Any]:
    """Send a case; return the status, and the causes, the message or the object that would be stored."""
    kind, _, old = case.send.partition(":")
    body = edited(BASES[case.base], edits_of(case))
    if kind == "scale":
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/web/scale"
        status, answer = server.send("PUT", path + QUERY, body)
    elif kind == "create":
        metadata = body.get("metadata")
        namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
        here = namespace if isinstance(namespace, str) and namespace else NAMESPACE
        status, answer = server.send("POST", path_of(here) + QUERY, body)
    else:
        path = path_of(NAMESPACE, old, "status" if kind == "status" else "")
        status, answer = server.send("PUT", path + QUERY, body)
    answer = with_steady_name(answer, body)
    if status == http.client.UNPROCESSABLE_ENTITY:
        causes = answer.get("details", {}).get("causes", [])
        said = [[cause.get("field", ""), cause.get("reason", ""), cause.get("message", "")] for cause in causes]
        return status, [answer["message"], said]
    if status in {http.client.OK, http.client.CREATED}:
        return status, without_made_up(answer)
    return status, answer.get("message", "")


def record(server: Server, gated: Server | None, olds: Json, chosen: Sequence[Case]) -> Iterator[list[Any]]:
    """Yield a row for every case that was judged."""
    seen = set()
    for case in chosen:
        old = case.send.partition(":")[2]
        row = [case.base, edits_of(case), case.send, int(case.gated)]
        key = json.dumps(row)
        if key in seen or (case.gated and gated is None) or (old and old not in olds):
            continue
        seen.add(key)
        yield [*row, *ask(gated if case.gated and gated else server, case)]


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("token")
    parser.add_argument("--gated", default="")
    parser.add_argument("--etcd", default="")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    server = Server(arguments.url, arguments.token)
    gated = Server(arguments.gated, arguments.token) if arguments.gated else None
    olds = prepare(server, gated, arguments.etcd)
    rows = list(record(server, gated, olds, cases()))
    kept = [row for row in rows if row[4] in JUDGED]
    table = {
        "kubernetes": server.send("GET", "/version")[1]["gitVersion"],
        "bases": BASES,
        "olds": {name: {**old, "metadata": {**old["metadata"], "managedFields": []}} for name, old in olds.items()},
        "columns": ["base", "edits", "send", "gated", "status", "answer"],
        "rows": kept,
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(table, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    arguments.output.write_bytes(lzma.compress(text.encode(errors="surrogatepass"), preset=9 | lzma.PRESET_EXTREME))
    sys.stderr.write(f"{len(kept)} rows, {arguments.output.stat().st_size} bytes; {Counter(row[4] for row in rows)}\n")


if __name__ == "__main__":
    main()
