"""kr8s: the steps that every client takes, see `tests/clients/test_clients.py`."""

# pyright: reportMissingImports=false

import asyncio
import json
import os
import sys
from collections.abc import Awaitable
from typing import Any

import kr8s
from kr8s.asyncio.objects import ConfigMap, Deployment, new_class

NAMESPACE = sys.argv[1]
Shop = new_class("Shop", version="clients.example.com/v1", namespaced=True)


async def code_of(call: Awaitable[Any]) -> tuple[int, str] | None:
    try:
        await call
    except kr8s.ServerError as error:
        return error.response.status_code, error.response.json()["reason"]
    except kr8s.NotFoundError:
        return 404, "NotFound"
    return None


async def watched(api: Any, started: asyncio.Event, found: list[list[str]]) -> None:
    async for kind, item in api.watch("configmaps", namespace=NAMESPACE, label_selector="app=web"):
        if kind == "ADDED":
            started.set()
        found.append([kind, item.name])
        if kind == "DELETED":
            return


async def main() -> None:
    api = await kr8s.asyncio.api(kubeconfig=os.environ["KUBECONFIG"], namespace=NAMESPACE)
    metadata = {"name": "settings", "namespace": NAMESPACE, "labels": {"app": "web"}}
    settings = await ConfigMap({"metadata": metadata, "data": {"colour": "red"}}, api=api)
    await settings.create()
    result: dict[str, Any] = {"created": settings.data.to_dict()}
    result["duplicate"] = await code_of(
        (await ConfigMap({"metadata": metadata, "data": {"colour": "red"}}, api=api)).create()
    )
    result["missing"] = await code_of(ConfigMap.get("other", namespace=NAMESPACE, api=api))
    result["listed"] = [
        item.name async for item in api.get("configmaps", namespace=NAMESPACE, label_selector="app=web")
    ]
    events: list[list[str]] = []
    started = asyncio.Event()
    watching = asyncio.create_task(watched(api, started, events))
    await asyncio.wait_for(started.wait(), 120)
    await settings.patch({"data": {"colour": "blue", "size": "1"}})
    result["patched"] = settings.data.to_dict()
    await settings.delete()
    await asyncio.wait_for(watching, 120)
    result["watched"] = events[1:]
    web = await Deployment({**json.loads(os.environ["DEPLOYMENT"])}, namespace=NAMESPACE, api=api)
    await web.create()
    await web.patch({"spec": {"replicas": 5}}, subresource="scale")
    await web.refresh()
    result["scaled"] = web.replicas
    corner = await Shop({"metadata": {"name": "corner", "namespace": NAMESPACE}, "spec": {"size": 3}}, api=api)
    await corner.create()
    result["custom"] = (await Shop.get("corner", namespace=NAMESPACE, api=api)).spec.to_dict()
    bad = await Shop({"metadata": {"name": "b", "namespace": NAMESPACE}, "spec": {"size": "x"}}, api=api)
    result["invalid"] = await code_of(bad.create())
    sys.stdout.write(json.dumps(result))


asyncio.run(main())
