"""pykube-ng: the steps that every client takes, see `tests/clients/test_clients.py`."""

# pyright: reportMissingImports=false

import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import pykube

NAMESPACE = sys.argv[1]


def code_of(call: Callable[[], Any]) -> tuple[int, str] | None:
    try:
        call()
    except pykube.exceptions.HTTPError as error:
        return error.code, {404: "NotFound", 409: "AlreadyExists", 422: "Invalid"}[error.code]
    except pykube.exceptions.ObjectDoesNotExist:
        return 404, "NotFound"
    return None


def watched(query: Any, started: threading.Event, found: list[list[str]]) -> None:
    for event in query.watch():
        if event.type == "ADDED":
            started.set()
        found.append([event.type, event.object.name])
        if event.type == "DELETED":
            return


def main() -> None:
    api = pykube.HTTPClient(pykube.KubeConfig.from_file(os.environ["KUBECONFIG"]))
    metadata = {"name": "settings", "namespace": NAMESPACE, "labels": {"app": "web"}}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"colour": "red"}}
    settings = pykube.ConfigMap(api, json.loads(json.dumps(manifest)))
    settings.create()
    result: dict[str, Any] = {"created": settings.obj["data"]}
    result["duplicate"] = code_of(lambda: pykube.ConfigMap(api, manifest).create())
    maps = pykube.ConfigMap.objects(api).filter(namespace=NAMESPACE)
    result["missing"] = code_of(lambda: maps.get_by_name("other"))
    query = pykube.ConfigMap.objects(api).filter(namespace=NAMESPACE, selector={"app": "web"})
    result["listed"] = [item.name for item in query]
    events: list[list[str]] = []
    started = threading.Event()
    watching = threading.Thread(target=watched, args=(query, started, events))
    watching.start()
    assert started.wait(120)
    settings.patch({"data": {"colour": "blue", "size": "1"}})
    result["patched"] = settings.obj["data"]
    settings.delete()
    watching.join(120)
    result["watched"] = events[1:]
    web = pykube.Deployment(api, {**json.loads(os.environ["DEPLOYMENT"])})
    web.obj["metadata"]["namespace"] = NAMESPACE
    web.create()
    web.patch({"spec": {"replicas": 5}}, subresource="scale")
    web.reload()
    result["scaled"] = web.replicas
    shops = pykube.object_factory(api, "clients.example.com/v1", "Shop")
    shop = {"apiVersion": "clients.example.com/v1", "kind": "Shop"}
    corner = shops(api, {**shop, "metadata": {"name": "corner", "namespace": NAMESPACE}, "spec": {"size": 3}})
    corner.create()
    result["custom"] = shops.objects(api).filter(namespace=NAMESPACE).get_by_name("corner").obj["spec"]
    bad = shops(api, {**shop, "metadata": {"name": "b", "namespace": NAMESPACE}, "spec": {"size": "x"}})
    result["invalid"] = code_of(bad.create)
    sys.stdout.write(json.dumps(result))


main()
