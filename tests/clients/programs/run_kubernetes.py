"""The official client and its dynamic client: the steps of `tests/clients/test_clients.py`."""

import json
import os
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

NAMESPACE = sys.argv[1]
client, config, dynamic, watch = (
    import_module(f"kubernetes.{name}") for name in ("client", "config", "dynamic", "watch")
)


def code_of(call: Callable[[], Any]) -> tuple[int, str] | None:
    try:
        call()
    except client.ApiException as error:
        return error.status, json.loads(error.body)["reason"]
    return None


def watched(core: Any, version: str, found: list[list[str]]) -> None:
    stream = watch.Watch().stream(core.list_namespaced_config_map, NAMESPACE, resource_version=version)
    for event in stream:
        found.append([event["type"], event["object"].metadata.name])
        if event["type"] == "DELETED":
            return


def custom(api: Any, result: dict[str, Any]) -> None:
    """Find a custom kind by discovery, and apply it."""
    shops = dynamic.DynamicClient(api).resources.get(api_version="clients.example.com/v1", kind="Shop")

    shop = {"apiVersion": "clients.example.com/v1", "kind": "Shop", "metadata": {"name": "corner"}, "spec": {"size": 3}}
    shops.server_side_apply(body=shop, name="corner", namespace=NAMESPACE, field_manager="us")
    found = shops.get(name="corner", namespace=NAMESPACE).to_dict()
    if [entry["manager"] for entry in found["metadata"]["managedFields"]] == ["us"]:
        result["custom"] = found["spec"]
    wrong = {**shop, "metadata": {"name": "b"}, "spec": {"size": "x"}}
    result["invalid"] = code_of(lambda: shops.create(body=wrong, namespace=NAMESPACE))


def main() -> None:
    with config.new_client_from_config(os.environ["KUBECONFIG"]) as api:
        core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
        settings = {"metadata": {"name": "settings", "labels": {"app": "web"}}, "data": {"colour": "red"}}
        result: dict[str, Any] = {"created": core.create_namespaced_config_map(NAMESPACE, settings).data}
        result["duplicate"] = code_of(lambda: core.create_namespaced_config_map(NAMESPACE, settings))
        result["missing"] = code_of(lambda: core.read_namespaced_config_map("other", NAMESPACE))
        listed = core.list_namespaced_config_map(NAMESPACE, label_selector="app=web")
        result["listed"] = [item.metadata.name for item in listed.items]
        events: list[list[str]] = []
        watching = threading.Thread(target=watched, args=(core, listed.metadata.resource_version, events))
        watching.start()
        patch = {"data": {"colour": "blue", "size": "1"}}
        result["patched"] = core.patch_namespaced_config_map("settings", NAMESPACE, patch).data
        core.delete_namespaced_config_map("settings", NAMESPACE)
        watching.join(120)
        result["watched"] = events
        apps.create_namespaced_deployment(NAMESPACE, json.loads(os.environ["DEPLOYMENT"]))
        apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 5}})
        result["scaled"] = apps.read_namespaced_deployment("web", NAMESPACE).spec.replicas
        custom(api, result)
    sys.stdout.write(json.dumps(result))


main()
