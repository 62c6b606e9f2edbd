"""Write the roles and bindings that `EmbeddedCluster(authorization=True)` begins with.

They are those of a real API server that tests of operators meet: the roles for users, and what every user may do.

    python -m scripts.generate.roles

needs the programs of `make envtest`. The same release gives the same bytes.
"""

import json
from pathlib import Path
from typing import Any, Final

from ocf.testing.envtest import ControlPlane

TARGET: Final = Path(__file__).parents[2] / "ocf_server" / "registry" / "default_roles.json"
ROLES: Final = (
    "admin",
    "cluster-admin",
    "edit",
    "system:aggregate-to-admin",
    "system:aggregate-to-edit",
    "system:aggregate-to-view",
    "system:auth-delegator",
    "system:basic-user",
    "system:discovery",
    "system:public-info-viewer",
    "view",
)
KINDS: Final = ("ClusterRole", "ClusterRoleBinding")
SERVER_METADATA: Final = ("creationTimestamp", "managedFields", "resourceVersion", "uid")


def as_sent(kind: str, found: dict[str, Any]) -> dict[str, Any]:
    """Return an object of a list without what the API server has set."""
    metadata = {name: value for name, value in found["metadata"].items() if name not in SERVER_METADATA}
    # A controller writes the rules of an aggregated role.
    rest = {name: value for name, value in found.items() if name not in ("metadata", "apiVersion", "kind") and value}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, **rest}


def main() -> None:
    """Read them off a real API server."""
    with ControlPlane() as plane:
        found = [
            as_sent(kind, item)
            for kind in KINDS
            for item in json.loads(plane.kubectl("get", f"{kind.lower()}s", "--output=json"))["items"]
            if item["metadata"]["name"] in ROLES
        ]
    lines = ",\n".join(json.dumps(one, sort_keys=True) for one in found)
    TARGET.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
