"""The handlers: `kopf run --all-namespaces -m examples.comparison.kopf_operator.handlers`."""

import asyncio
import logging
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any, Final

import kopf
from kubernetes import client, config
from kubernetes.client import ApiException

from examples.comparison.kopf_operator import objects
from examples.comparison.kopf_operator.objects import GROUP, PLURAL, VERSION, Object, Site

__all__: list[str] = []

_RETRY_SECONDS: Final = 5
_APPLY: Final[dict[str, Any]] = {
    "field_manager": "site-operator",
    "force": True,
    "_content_type": "application/apply-patch+yaml",
}
_MERGE: Final[dict[str, Any]] = {"_content_type": "application/merge-patch+json"}
_NOT_FOUND: Final = 404

_Key = tuple[str | None, str]
_locks: defaultdict[_Key, asyncio.Lock] = defaultdict(asyncio.Lock)


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    """Load the client's configuration, and keep log lines out of events."""
    settings.posting.level = logging.WARNING
    try:
        config.load_incluster_config()  # type: ignore[no-untyped-call]
    except config.ConfigException:
        config.load_kube_config()  # type: ignore[no-untyped-call]


@kopf.index(GROUP, VERSION, PLURAL)
def sites(namespace: str | None, name: str, body: kopf.Body, **_: Any) -> dict[_Key, Any]:
    """Return a site by its name, for events of its objects."""
    return {(namespace, name): body}


@kopf.on.resume(GROUP, VERSION, PLURAL, backoff=_RETRY_SECONDS)
@kopf.on.create(GROUP, VERSION, PLURAL, backoff=_RETRY_SECONDS)
@kopf.on.update(GROUP, VERSION, PLURAL, backoff=_RETRY_SECONDS)
async def site_changed(namespace: str | None, name: str, **indices: Any) -> None:
    """Reconcile a site that is new or has changed; kopf retries a failure."""
    await _reconcile((namespace, name), indices["sites"])


@kopf.on.event(GROUP, VERSION, PLURAL)
def site_deleted(type: str | None, namespace: str | None, name: str, **_: Any) -> None:  # noqa: A002 (kopf's name)
    """Forget a site."""
    if type == "DELETED":
        _locks.pop((namespace, name), None)


@kopf.on.event("v1", "configmaps", labels={"app.kubernetes.io/name": "site"})
@kopf.on.event("v1", "services", labels={"app.kubernetes.io/name": "site"})
@kopf.on.event("apps", "v1", "deployments", labels={"app.kubernetes.io/name": "site"})
@kopf.on.event("autoscaling", "v2", "horizontalpodautoscalers", labels={"app.kubernetes.io/name": "site"})
async def object_changed(
    type: str | None,  # noqa: A002 (kopf's name)
    namespace: str | None,
    name: str,
    logger: kopf.Logger,
    **indices: Any,
) -> None:
    """Reconcile the site of an object that has changed, until that succeeds: kopf does not retry such handlers."""
    if type is None:  # it existed at the start, and so did its site, which is resumed
        return
    while True:
        try:
            await _reconcile((namespace, name), indices["sites"])
        except ApiException as error:
            logger.warning("Reconciling failed, and is tried again: %s", error)
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            return


async def _reconcile(key: _Key, sites: kopf.Index[_Key, Any]) -> None:
    """Bring the objects of a site to its desired state, one reconcile at a time, with its latest state."""
    async with _locks[key]:
        for site in sites.get(key, []):
            if "deletionTimestamp" not in site["metadata"]:
                await asyncio.to_thread(_reconcile_site, site)


def _reconcile_site(site: Site) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        live = _apply_objects(site)
    except ApiException as error:
        _report(site, objects.changed(site, "False", "Error", f"{error.status} {error.reason}", now))
        raise
    _report(site, objects.condition(site, live, now))


def _apply_objects(site: Site) -> Object:
    """Apply all objects; return the Deployment as the API server stores it."""
    name, namespace = site["metadata"]["name"], site["metadata"]["namespace"]
    core, apps = client.CoreV1Api(), client.AppsV1Api()
    core.patch_namespaced_config_map(name, namespace, objects.config_map(site), **_APPLY)
    # Before the Deployment is scaled to zero, so that the autoscaler does not interfere.
    _reconcile_autoscaler(site)
    desired = objects.deployment(site, _live_deployment(name, namespace))
    applied = apps.patch_namespaced_deployment(name, namespace, desired, **_APPLY)
    core.patch_namespaced_service(name, namespace, objects.service(site), **_APPLY)
    return _plain(applied)


def _reconcile_autoscaler(site: Site) -> None:
    """Apply the autoscaler, or delete it while there should be none."""
    name, namespace = site["metadata"]["name"], site["metadata"]["namespace"]
    autoscaling = client.AutoscalingV2Api()
    desired = objects.autoscaler(site)
    if desired:
        autoscaling.patch_namespaced_horizontal_pod_autoscaler(name, namespace, desired, **_APPLY)
        return
    try:
        live = _plain(autoscaling.read_namespaced_horizontal_pod_autoscaler(name, namespace))["metadata"]
        if any(owner["uid"] == site["metadata"]["uid"] for owner in live.get("ownerReferences", [])):
            same = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid=live["uid"]))
            autoscaling.delete_namespaced_horizontal_pod_autoscaler(name, namespace, body=same)
    except ApiException as error:
        if error.status != _NOT_FOUND:
            raise


def _live_deployment(name: str, namespace: str) -> Object | None:
    try:
        return _plain(client.AppsV1Api().read_namespaced_deployment(name, namespace))
    except ApiException as error:
        if error.status == _NOT_FOUND:
            return None
        raise


def _plain(model: object) -> Object:
    """Return the manifest of a model of the client."""
    manifest: Object = client.ApiClient().sanitize_for_serialization(model)  # type: ignore[no-untyped-call]
    return manifest


def _report(site: Site, condition: Object) -> None:
    """Write the condition if it has changed."""
    if condition in site.get("status", {}).get("conditions", []):
        return
    name, namespace = site["metadata"]["name"], site["metadata"]["namespace"]
    status = {"status": {"conditions": [condition]}}
    try:
        client.CustomObjectsApi().patch_namespaced_custom_object_status(
            GROUP, VERSION, namespace, PLURAL, name, status, **_MERGE
        )
    except ApiException as error:
        if error.status != _NOT_FOUND:
            raise
