"""kubernetes_asyncio: the steps that every client takes, see `tests/clients/test_clients.py`."""

# pyright: reportMissingImports=false

import asyncio
import json
import os
import sys
from collections.abc import Awaitable
from typing import Any

from kubernetes_asyncio import client, config, watch

NAMESPACE = sys.argv[1]
MERGE = "application/merge-patch+json"


async def watched(core: Any, version: str, found: list[list[str]]) -> None:
    stream = watch.Watch()
    async with stream.stream(core.list_namespaced_config_map, NAMESPACE, resource_version=version) as events:
        async for event in events:
            found.append([event["type"], event["object"].metadata.name])
            if event["type"] == "DELETED":
                return


async def code_of(call: Awaitable[Any]) -> tuple[int, str] | None:
    try:
        await call
    except client.ApiException as error:
        return error.status, json.loads(error.body)["reason"]
    return None


async def main() -> None:
    await config.load_kube_config(os.environ["KUBECONFIG"])
    async with client.ApiClient() as api:
        core, apps, custom = client.CoreV1Api(api), client.AppsV1Api(api), client.CustomObjectsApi(api)
        settings = {"metadata": {"name": "settings", "labels": {"app": "web"}}, "data": {"colour": "red"}}
        made = await core.create_namespaced_config_map(NAMESPACE, settings)
        result: dict[str, Any] = {"created": made.data}
        result["duplicate"] = await code_of(core.create_namespaced_config_map(NAMESPACE, settings))
        result["missing"] = await code_of(core.read_namespaced_config_map("other", NAMESPACE))
        listed = await core.list_namespaced_config_map(NAMESPACE, label_selector="app=web")
        result["listed"] = [item.metadata.name for item in listed.items]
        events: list[list[str]] = []
        watching = asyncio.create_task(watched(core, listed.metadata.resource_version, events))
        patch = {"data": {"colour": "blue", "size": "1"}}
        patched = await core.patch_namespaced_config_map("settings", NAMESPACE, patch, _content_type=MERGE)
        result["patched"] = patched.data
        await core.delete_namespaced_config_map("settings", NAMESPACE)
        await asyncio.wait_for(watching, 120)
        result["watched"] = events
        await apps.create_namespaced_deployment(NAMESPACE, json.loads(os.environ["DEPLOYMENT"]))
        scale = {"spec": {"replicas": 5}}
        await apps.patch_namespaced_deployment_scale("web", NAMESPACE, scale, _content_type=MERGE)
        result["scaled"] = (await apps.read_namespaced_deployment("web", NAMESPACE)).spec.replicas
        kind = ("clients.example.com", "v1", NAMESPACE, "shops")
        shop = {"apiVersion": "clients.example.com/v1", "kind": "Shop", "metadata": {"name": "corner"}}
        await custom.create_namespaced_custom_object(*kind, {**shop, "spec": {"size": 3}})
        result["custom"] = (await custom.get_namespaced_custom_object(*kind, "corner"))["spec"]
        result["invalid"] = await code_of(
            custom.create_namespaced_custom_object(*kind, {**shop, "metadata": {"name": "b"}, "spec": {"size": "x"}})
        )
    sys.stdout.write(json.dumps(result))


asyncio.run(main())
