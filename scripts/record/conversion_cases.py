"""Requests for kinds with a conversion webhook, for `scripts/record/sequences.py`; the webhook is part of the tests."""

import http.server
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from ocf.testing.envtest import ControlPlane
from tests.ocf_server.sequences.conversion_webhook import RESPONSES, response

Json = dict[str, Any]

GROUP: Final = "conversion.example.com"
NAMESPACE: Final = "conversion"
MERGE: Final = "application/merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
WEBHOOK: Final = "WEBHOOK"
"""Stands for the client configuration of the webhook, which the recorder and the test replace."""


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(response(self.path.partition("?")[0], review)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (name of the base class)
        """Print nothing."""


@contextmanager
def serving(plane: ControlPlane) -> Iterator[str]:
    """Serve the webhook over HTTPS with a certificate of the control plane; yield its URL."""
    files = plane.certificate_for("conversion")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()


def _definition(kind: str, path: str) -> Json:
    text = {"type": "string"}

    def version(name: str, **properties: Any) -> Json:
        schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
        return {"name": name, "served": True, "storage": name == "v2", "schema": {"openAPIV3Schema": schema}}

    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": {WEBHOOK: path}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"kind": kind, "plural": f"{kind.lower()}s"},
            "scope": "Namespaced",
            "versions": [version("v1", address=text), version("v2", street=text, city=text)],
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }


def _request(method: str, path: str, body: Json | None = None, kind: str = "application/json") -> Json:
    return {"method": method, "path": path, "body": body, "kind": kind}


def cases() -> Iterator[Json]:
    """Yield a case for each response of the webhook."""
    for index, title in enumerate(RESPONSES):
        kind = f"Shop{index}"

        def path(version: str, suffix: str = "", kind: str = kind) -> str:
            return f"/apis/{GROUP}/{version}/namespaces/{NAMESPACE}/{kind.lower()}s{suffix}"

        def shop(version: str, name: str, kind: str = kind, **spec: str) -> Json:
            metadata = {"name": name, "namespace": NAMESPACE}
            return {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": metadata, "spec": spec}

        new = shop("v2", "new", street="High St", city="York")
        requests = [
            _request("POST", path("v2", "?fieldManager=ann"), new),
            _request("GET", path("v1", "/new")),
            _request("POST", path("v1", "?fieldManager=ann"), shop("v1", "old", address="Low St, Leeds")),
            _request("GET", path("v2", "/old")),
            _request("PATCH", path("v1", "/new?fieldManager=bob"), {"spec": {"address": "High St, Bath"}}, MERGE),
            _request("PATCH", path("v2", "/new?fieldManager=cat"), {"spec": {"city": "York"}}, MERGE),
            _request("PATCH", path("v1", "/new?fieldManager=dan"), shop("v1", "new", address="Low St, Ely"), APPLY),
            _request("PATCH", path("v1", "/other?fieldManager=dan"), shop("v1", "other", address="A, B"), APPLY),
            _request("PATCH", path("v2", "/other?fieldManager=dan"), shop("v2", "other", street="C"), APPLY),
            _request(
                "PATCH", path("v1", "/other?fieldManager=eve&force=true"), shop("v1", "other", address="E, F"), APPLY
            ),
            _request("GET", path("v2", "/other")),
            _request("PATCH", path("v1", "/new?dryRun=All&fieldManager=bob"), {"spec": {"address": "X, Y"}}, MERGE),
            _request("DELETE", path("v2", "/new")),
        ]
        made = [_request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _definition(kind, title))]
        yield {"title": title, "namespace": NAMESPACE, "setup": made, "requests": requests}
