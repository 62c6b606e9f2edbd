"""Runs scenarios on a cluster with controllers."""

from collections.abc import Awaitable, Callable, Sequence

from ocf.cluster import Cluster, PatchOptions, PatchType
from ocf.objects import Manifest, ObjectKey
from tests.ocf_server.controllers.comparison.scenarios import Delete, Patch, Step
from tests.ocf_server.controllers.comparison.states import State, observe

__all__ = ["run_scenario"]

_USER = "user"


async def run_scenario(
    cluster: Cluster, namespace: str, steps: Sequence[Step], rest: Callable[[Step], Awaitable[None]]
) -> list[State]:
    """Run a scenario; return the state after each step.

    Args:
        cluster: The cluster.
        namespace: An empty namespace.
        steps: The steps.
        rest: Waits until the controllers are at rest after a step.
    """
    states = []
    for step in steps:
        for request in step.requests:
            await _send(cluster, namespace, request)
        await rest(step)
        states.append(await observe(cluster, namespace))
    return states


async def _send(cluster: Cluster, namespace: str, request: Manifest | Patch | Delete) -> None:
    if isinstance(request, Patch):
        key = ObjectKey(request.api_version, request.kind, request.name, namespace)
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager=_USER)
        await cluster.patch(key, dict(request.patch), options)
    elif isinstance(request, Delete):
        key = ObjectKey(request.api_version, request.kind, request.name, namespace)
        await cluster.delete(key, request.options)
    else:
        manifest = {**request, "metadata": {**request["metadata"], "namespace": namespace}}
        await cluster.create(manifest, field_manager=_USER)
