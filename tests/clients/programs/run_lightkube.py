"""lightkube: the steps that every client takes, see `tests/clients/test_clients.py`."""

# pyright: reportMissingImports=false

import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from lightkube import ApiError, Client, KubeConfig
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.autoscaling_v1 import ScaleSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap
from lightkube.types import PatchType

NAMESPACE = sys.argv[1]
Shop = create_namespaced_resource("clients.example.com", "v1", "Shop", "shops")


def code_of(call: Callable[[], Any]) -> tuple[int, str] | None:
    try:
        call()
    except ApiError as error:
        return error.status.code, error.status.reason
    return None


def watched(client: Any, version: str, found: list[list[str]]) -> None:
    for kind, item in client.watch(ConfigMap, resource_version=version):
        found.append([kind, item.metadata.name])
        if kind == "DELETED":
            return


def main() -> None:
    client = Client(KubeConfig.from_file(os.environ["KUBECONFIG"]).get(), namespace=NAMESPACE)
    settings = ConfigMap(metadata=ObjectMeta(name="settings", labels={"app": "web"}), data={"colour": "red"})
    result: dict[str, Any] = {"created": client.create(settings).data}
    result["duplicate"] = code_of(lambda: client.create(settings))
    result["missing"] = code_of(lambda: client.get(ConfigMap, "other"))
    listed = client.list(ConfigMap, labels={"app": "web"})
    result["listed"] = [item.metadata.name for item in listed]
    events: list[list[str]] = []
    watching = threading.Thread(target=watched, args=(client, listed.resourceVersion, events))
    watching.start()
    patch = {"data": {"colour": "blue", "size": "1"}}
    result["patched"] = client.patch(ConfigMap, "settings", patch, patch_type=PatchType.MERGE).data
    client.delete(ConfigMap, "settings")
    watching.join(120)
    result["watched"] = events
    web = Deployment.from_dict(json.loads(os.environ["DEPLOYMENT"]))
    client.create(web)
    client.replace(
        Deployment.Scale(metadata=ObjectMeta(name="web", namespace=NAMESPACE), spec=ScaleSpec(replicas=5)), "web"
    )
    scaled = client.get(Deployment, "web").spec
    result["scaled"] = scaled.replicas
    client.create(Shop(metadata=ObjectMeta(name="corner"), spec={"size": 3}))
    result["custom"] = client.get(Shop, "corner").spec
    result["invalid"] = code_of(lambda: client.create(Shop(metadata=ObjectMeta(name="b"), spec={"size": "x"})))
    sys.stdout.write(json.dumps(result))


main()
