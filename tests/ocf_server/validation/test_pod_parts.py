"""Parts of pods that have endpoints of their own are validated with the whole pod."""

from typing import Any

import pytest

from ocf.cluster import Subresource
from ocf.errors import InvalidError
from ocf_server import EmbeddedCluster

PATH = "spec.ephemeralContainers"


def pod(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "web", "namespace": "default"}
    body = {"containers": [{"name": "web", "image": "nginx"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}


async def causes(spec: dict[str, Any], subresource: Subresource) -> list[tuple[str, str]]:
    """Update a part of a pod with an ephemeral container; return the field and the message of each cause."""
    cluster = EmbeddedCluster()
    created = await cluster.create(pod(), field_manager="test")
    debugged = {**created, "spec": {**created["spec"], "ephemeralContainers": [{"name": "debug", "image": "busybox"}]}}
    live = await cluster.update(debugged, field_manager="test", subresource=Subresource.EPHEMERAL_CONTAINERS)
    with pytest.raises(InvalidError) as caught:
        await cluster.update({**live, "spec": {**live["spec"], **spec}}, field_manager="test", subresource=subresource)
    return [(cause.field, cause.message) for cause in caught.value.causes]


async def test_an_ephemeral_container_is_validated_like_others() -> None:
    added = [{"name": "debug", "image": "busybox"}, {"name": "web", "image": "", "targetContainerName": "none"}]
    found = await causes({"ephemeralContainers": added}, Subresource.EPHEMERAL_CONTAINERS)

    assert found == [
        (f"{PATH}[1].image", "Required value"),
        (f"{PATH}[1].name", 'Duplicate value: "web"'),
        (f"{PATH}[1].targetContainerName", 'Not found: "none"'),
    ]


async def test_a_changed_ephemeral_container_is_rejected_with_the_difference() -> None:
    changed = [{"name": "debug", "image": "alpine", "imagePullPolicy": "Always"}]
    ((field, message),) = await causes({"ephemeralContainers": changed}, Subresource.EPHEMERAL_CONTAINERS)

    assert field == PATH
    start = 'Forbidden: existing ephemeral containers "debug" may not be changed\n@@ -1,6 +1,6 @@\n'
    assert message.startswith(f'{start} {{\n  "Name": "debug",\n- "Image": "busybox",\n+ "Image": "alpine",\n')


async def test_a_resize_is_validated_like_the_pod() -> None:
    resized = [{"name": "web", "image": "nginx", "resources": {"requests": {"cpu": "-1"}}}]
    found = await causes({"containers": resized}, Subresource.RESIZE)

    negative = 'Invalid value: "-1": must be greater than or equal to 0'
    assert ("spec.containers[0].resources.requests[cpu]", negative) in found
