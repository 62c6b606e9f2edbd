"""Defaults of a LimitRange are those that the API server gives to pods."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from ocf.autoscaling.targets.pod_resources import read_pods, with_limit_ranges
from ocf.objects import Manifest, Quantity

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.plugin import Envtest

ITEMS: Final[list[Manifest]] = [
    {"defaultRequest": {"cpu": "100m"}},
    {"default": {"cpu": "500m"}},
    {"default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}},
    {"max": {"cpu": "800m"}},
    {"min": {"cpu": "50m"}},
    {"max": {"cpu": "800m"}, "min": {"cpu": "50m"}},
    {"max": {"cpu": "800m"}, "defaultRequest": {"cpu": "100m"}},
    {"default": {"memory": "1Gi"}},
]
RESOURCES: Final[list[Manifest]] = [
    {},
    {"limits": {"cpu": "400m"}},
    {"requests": {"cpu": "200m"}},
    {"requests": {"cpu": "200m"}, "limits": {"cpu": "400m"}},
    {"limits": {"memory": "512Mi"}},
]


async def test_the_api_server_sets_the_same_requests_and_limits(
    envtest: Envtest, envtest_cluster: ApiServerCluster
) -> None:
    for number, item in enumerate(ITEMS):
        namespace = f"{envtest.namespace}-{number}"
        spec = {"limits": [{"type": "Container", **item}]}
        ranges = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "limits", "namespace": namespace}}
        home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        await envtest_cluster.create(home, field_manager="test")
        # Written before the first pod of the namespace: the API server remembers for a while that there was none.
        await envtest_cluster.create({**ranges, "spec": spec}, field_manager="test")
        for resources in RESOURCES:
            pod = {"containers": [{"name": "app", "image": "app", "resources": resources}]}
            metadata = {"generateName": "web-", "namespace": namespace}
            written = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}
            stored = await envtest_cluster.create(written, field_manager="test", dry_run=True)
            (ours,) = with_limit_ranges(read_pods({"spec": pod}), [{**ranges, "spec": spec}]).containers

            for amounts, resource in itertools.product(("requests", "limits"), ("cpu", "memory")):
                found, real = (
                    each["resources"].get(amounts, {}).get(resource) for each in (ours, stored["spec"]["containers"][0])
                )
                if amounts == "requests" and found is None:
                    # A limit is read as the request where there is none.
                    found = ours["resources"].get("limits", {}).get(resource)
                assert (found is None, real is None) in {(True, True), (False, False)}, (
                    item,
                    resources,
                    amounts,
                    resource,
                )
                assert found is None or Quantity.parse(found) == Quantity.parse(real), (item, resources, amounts)
