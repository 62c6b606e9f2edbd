"""Write the objects that an API server creates in a new cluster, with which the embedded one can begin.

    python -m scripts.generate.system_objects

needs the programs of `make envtest`. Left out is what belongs to one server (its Lease, its certificates) and the
IPAddress of its Service: the embedded server creates none for other Services either. Uids, versions and times are set
when a cluster begins.
"""

import gzip
import json
from pathlib import Path
from typing import Any, Final

from ocf.testing.envtest import ControlPlane

TARGET: Final = Path(__file__).parents[2] / "ocf_server" / "registry" / "system_objects.json.gz"
KINDS: Final = (
    "configmaps",
    "services",
    "endpoints",
    "endpointslices",
    "servicecidrs",
    "priorityclasses",
    "clusterroles",
    "clusterrolebindings",
    "roles",
    "rolebindings",
    "flowschemas",
    "prioritylevelconfigurations",
)
SERVER_METADATA: Final = ("creationTimestamp", "resourceVersion", "uid")
CERTIFICATES: Final = "extension-apiserver-authentication"
FLAGS: Final[dict[str, str | None]] = {
    # Of the range that is reserved for documentation: an API server makes no endpoints of a loopback address.
    "advertise-address": "192.0.2.1",
    "endpoint-reconciler-type": "lease",
    "service-cluster-ip-range": "10.96.0.0/12",
}
PORT: Final = 6443


def as_new(found: dict[str, Any]) -> dict[str, Any]:
    """Return an object without what differs between clusters."""
    metadata = {name: value for name, value in found["metadata"].items() if name not in SERVER_METADATA}
    for entry in metadata.get("managedFields", ()):
        entry.pop("time", None)
    for condition in found.get("status", {}).get("conditions") or ():
        condition.pop("lastTransitionTime", None)
    if found["kind"] == "ConfigMap":
        # The day since which tokens are tracked.
        found = {**found, "data": {}}
    return {**found, "metadata": metadata}


def main() -> None:
    """Read them off a real API server."""
    with ControlPlane(server_arguments=FLAGS) as plane:
        text = plane.kubectl("get", ",".join(KINDS), "--all-namespaces", "--show-managed-fields", "--output=json")
        port = plane.url.rpartition(":")[2]
    items = json.loads(text.replace(f": {port}", f": {PORT}"))["items"]
    found = [as_new(item) for item in items if item["metadata"]["name"] != CERTIFICATES]
    TARGET.write_bytes(gzip.compress(json.dumps(found, sort_keys=True).encode(), compresslevel=9, mtime=0))
    print(f"{TARGET.name}: {len(found)} objects, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
