"""Write what the embedded API server says about itself over HTTP: discovery, table columns, OpenAPI schemas.

All of it is read off a running API server, of the kinds that the table of `scripts/generate/schema.py` has, so run that
one first:

    python scripts/generate/openapi.py https://127.0.0.1:6443 TOKEN

Two files come of it. What every client asks for (discovery, and how a kind is printed) is small and apart from the
schemas, which only some ask for. The same server gives the same bytes.
"""

import argparse
import gzip
import http.client
import json
import lzma
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from ocf_server.http.openapi_custom import PLACEHOLDER

Json = dict[str, Any]

EMBEDDED: Final = Path(__file__).parents[2] / "ocf_server"
AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TABLE: Final = "application/json;as=Table;g=meta.k8s.io;v=v1"
REVIEWS: Final = ("authentication.k8s.io", "authorization.k8s.io")
"""Groups without stored kinds: what is asked of them is answered, not kept."""
ANSWERED: Final = ("Binding", "ComponentStatus")
"""Kinds of the core group of which the same holds."""


class Server:
    """Reads JSON documents of an API server; certificates are not checked, the server is a local one."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url.rstrip("/")
        self._token = token
        self._context = ssl._create_unverified_context()  # noqa: S323, SLF001 (a throw-away server on loopback)

    def get(self, path: str, accept: str = "application/json") -> Json:
        """Read one document."""
        headers = {"Authorization": f"Bearer {self._token}", "Accept": accept}
        request = urllib.request.Request(self._url + path, headers=headers)  # noqa: S310 (the URL is the operator's)
        with urllib.request.urlopen(request, context=self._context) as answer:  # noqa: S310 (likewise)
            return dict(json.load(answer))

    def text(self, path: str) -> str:
        """Read a text."""
        request = urllib.request.Request(self._url + path, headers={"Authorization": f"Bearer {self._token}"})  # noqa: S310 (as above)
        with urllib.request.urlopen(request, context=self._context) as answer:  # noqa: S310 (likewise)
            return str(answer.read().decode())

    def create(self, path: str, body: Json) -> None:
        """Create an object, unless it exists."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        data = json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data=data, headers=headers)  # noqa: S310 (as above)
        try:
            urllib.request.urlopen(request, context=self._context).close()  # noqa: S310 (likewise)
        except urllib.error.HTTPError as error:
            if error.code != http.client.CONFLICT:
                raise


def embedded_kinds() -> set[tuple[str, str, str]]:
    """Return group, version and kind of what the embedded server stores."""
    table = json.loads(gzip.decompress((EMBEDDED.parent / "ocf" / "schema" / "builtin.json.gz").read_bytes()))
    return {(row[0], row[1], row[2]) for row in table["kinds"]}


def served(server: Server, kinds: set[tuple[str, str, str]]) -> Iterator[Json]:
    """Read the resources that the embedded server has, in the order of discovery."""
    for root in ("/api", "/apis"):
        for group in server.get(root, AGGREGATED)["items"]:
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                hashes = version_hashes(server, name, version["version"])
                for resource in version["resources"]:
                    kind = (name, version["version"], resource["responseKind"]["kind"])
                    if kind in kinds or name in REVIEWS or (not name and kind[2] in ANSWERED):
                        hashed = {"hash": hashes[resource["resource"]]} if resource["resource"] in hashes else {}
                        yield _entry(server, name, version["version"], resource) | hashed


def version_hashes(server: Server, group: str, version: str) -> dict[str, str]:
    """Read the hashes of storage versions, which only the older form of discovery has."""
    resources = server.get(f"/apis/{group}/{version}" if group else f"/api/{version}")["resources"]
    return {one["name"]: one["storageVersionHash"] for one in resources if "storageVersionHash" in one}


def _entry(server: Server, group: str, version: str, resource: Json) -> Json:
    entry = {
        "group": group,
        "version": version,
        "kind": resource["responseKind"]["kind"],
        "plural": resource["resource"],
        "singular": resource["singularResource"],
        "namespaced": resource["scope"] == "Namespaced",
        "verbs": resource["verbs"],
        "short_names": resource.get("shortNames", []),
        "categories": resource.get("categories", []),
        "subresources": [
            {"name": part["subresource"], "kind": part["responseKind"], "verbs": part["verbs"]}
            for part in resource.get("subresources", [])
        ],
    }
    if "list" in resource["verbs"]:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        entry["columns"] = server.get(f"{path}/{resource['resource']}", TABLE)["columnDefinitions"]
    return entry


def groups(server: Server, names: Iterable[str]) -> Json:
    """Read what the documents of groups, and those of no group, say of their only path."""
    found = {}
    for path in (".well-known/openid-configuration", "api", "apis", "openid/v1/jwks", "version", *map(_GROUP, names)):
        found[path] = server.get(f"/openapi/v3/{path}")
    return found


def checks(server: Server) -> Json:
    """Read the names of the health checks of each path of health, in order."""
    return {
        name: [line.split()[0].removeprefix("[+]") for line in server.text(f"/{name}?verbose").splitlines()[:-1]]
        for name in ("healthz", "livez", "readyz")
    }


_GROUP: Final = "apis/{}".format


def schemas(server: Server, versions: Iterable[tuple[str, str]]) -> Json:
    """Read the schemas of some groups; one that stands in several documents lists its kinds of all of them."""
    found: Json = {}
    for group, version in versions:
        path = f"apis/{group}/{version}" if group else f"api/{version}"
        for name, schema in server.get(f"/openapi/v3/{path}")["components"]["schemas"].items():
            known = found.setdefault(name, schema)
            extra = schema.get(_KINDS, [])
            if known is not schema and extra:
                known[_KINDS] = [*known[_KINDS], *(kind for kind in extra if kind not in known[_KINDS])]
    return found


_KINDS: Final = "x-kubernetes-group-version-kind"


def custom(server: Server) -> Json:
    """Create the placeholder kinds, and read their paths, by scope."""
    group, version = PLACEHOLDER["group"], PLACEHOLDER["version"]
    names = {scope: PLACEHOLDER[scope] for scope in ("Namespaced", "Cluster")}
    for scope, (plural, kind) in names.items():
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        parts = {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}}
        spec = {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "kind": kind},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": parts,
                }
            ],
        }
        server.create(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            {"metadata": {"name": f"{plural}.{group}"}, "spec": spec},
        )
    time.sleep(_PUBLISHED_SECONDS)
    paths = server.get(f"/openapi/v3/apis/{group}/{version}")["paths"]
    return {
        scope: {path: item for path, item in paths.items() if plural in path.split("/")}
        for scope, (plural, _) in names.items()
    }


_PUBLISHED_SECONDS: Final = 5


def _text(document: Json) -> bytes:
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("token")
    parser.add_argument("--output", type=Path, default=EMBEDDED / "http")
    arguments = parser.parse_args()
    server = Server(arguments.url, arguments.token)
    resources = list(served(server, embedded_kinds()))
    version = {key: value for key, value in server.get("/version").items() if key in {"major", "minor", "gitVersion"}}
    found = schemas(server, dict.fromkeys((entry["group"], entry["version"]) for entry in resources))
    documents = groups(server, dict.fromkeys(entry["group"] for entry in resources if entry["group"]))
    for document in documents.values():
        found.update(document.pop("components").get("schemas", {}))
    discovery = arguments.output / "served.json.gz"
    served_text = _text({"checks": checks(server), "version": version, "resources": resources})
    discovery.write_bytes(gzip.compress(served_text, compresslevel=9, mtime=0))
    openapi = arguments.output / "openapi.json.xz"
    openapi.write_bytes(
        lzma.compress(
            _text({"schemas": found, "custom": custom(server), "groups": documents}), preset=9 | lzma.PRESET_EXTREME
        )
    )
    for path in (discovery, openapi):
        sys.stderr.write(f"{path.name}: {path.stat().st_size} bytes\n")
    sys.stderr.write(f"{len(resources)} resources, {len(found)} schemas\n")


if __name__ == "__main__":
    main()
