"""Record what the real controllers make of the scenarios that the tests compare ours with.

The scenarios of `tests/ocf_server/controllers/comparison` run on a real control plane with kube-controller-manager, the
scheduler and kwok, each in a namespace of its own. The state at rest after each step is written.

    python -m ocf.testing.envtest
    python -m scripts.record.controllers [SCENARIO ...]
"""

import argparse
import asyncio
import copy
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib.resources import files
from typing import Any, Final

from ocf.cluster import Cluster, PatchOptions, PatchType
from ocf.objects import Manifest, ObjectKey
from ocf.objects.documents import load_documents
from ocf.testing.envtest import ControlPlane
from ocf.testing.envtest.binaries import find_programs
from ocf_server.controllers.kubelet import EXIT_CODE, FINISH_AFTER, READY_AFTER
from ocf_server.controllers.settings import CONTROLLER_NAMES
from tests.ocf_server.controllers.comparison.recorded import load, save
from tests.ocf_server.controllers.comparison.running import run_scenario
from tests.ocf_server.controllers.comparison.scenarios import NODES, SCENARIOS, Step
from tests.ocf_server.controllers.comparison.states import State, observe

_REST: Final = 3.0
_POLL: Final = 0.25
_LONGEST: Final = 90.0


async def record(names: Sequence[str]) -> None:
    """Run scenarios, and write the states.

    Args:
        names: The scenarios.
    """
    controllers = (*CONTROLLER_NAMES, "garbage-collector-controller")
    with ExitStack() as stack:
        plane = stack.enter_context(ControlPlane(find_programs()))
        for program in (plane.controllers(*controllers), plane.scheduler(), plane.kwok(stages())):
            stack.enter_context(program)
        states = await _run_all(plane, names)
    known = load() if len(names) < len(SCENARIOS) else {}
    save({**known, **dict(zip(names, states, strict=True))})


async def _run_all(plane: ControlPlane, names: Sequence[str]) -> Sequence[Sequence[State]]:
    async with await plane.cluster() as cluster:
        for node in NODES:
            await cluster.create(node, field_manager="user")
            # The API server taints a new node as not ready, and the controller that removes the taint does not run.
            taints = {"spec": {"taints": node["spec"].get("taints")}}
            options = PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
            await cluster.patch(ObjectKey.of(node), taints, options)
        return await asyncio.gather(*(_run(plane, cluster, name) for name in names))


async def _run(plane: ControlPlane, cluster: Cluster, name: str) -> Sequence[State]:
    with plane.namespace(f"{name}-") as namespace:

        async def rest(step: Step) -> None:
            await asyncio.sleep(step.wait)
            await _rest(cluster, namespace)

        states = await run_scenario(cluster, namespace, SCENARIOS[name], rest)
    print(f"{name}: {len(states)} states")
    plain: Sequence[State] = json.loads(json.dumps(states).replace(namespace, "default"))
    return plain


async def _rest(cluster: Cluster, namespace: str) -> None:
    """Wait until the state has not changed for a while."""
    loop = asyncio.get_running_loop()
    began = since = loop.time()
    before: Mapping[str, Any] = {}
    while loop.time() - since < _REST and loop.time() - began < _LONGEST:
        await asyncio.sleep(_POLL)
        state = await observe(cluster, namespace)
        if state != before:
            before, since = state, loop.time()


def stages() -> Sequence[Manifest]:
    """Return the default stages of kwok, changed so that pods heed the annotations of the simulated kubelet."""
    text = files("ocf.testing.envtest").joinpath("kwok_stages.yaml").read_text(encoding="utf-8")
    found: list[Manifest] = []
    for stage in load_documents(text):
        name = stage["metadata"]["name"]
        if name == "pod-running":
            _require(stage, READY_AFTER, "NotIn", ["never"])
            address = "phase: Running\npodIP: 10.0.0.1\npodIPs:\n- ip: 10.0.0.1\n"
            stage["spec"]["next"]["statusTemplate"] = stage["spec"]["next"]["statusTemplate"].replace(
                "phase: Running\n", address
            )
        if name == "pod-completed":
            failed = copy.deepcopy(stage)
            failed["metadata"]["name"] = "pod-failed"
            template = failed["spec"]["next"]["statusTemplate"]
            failed["spec"]["next"]["statusTemplate"] = (
                template.replace("phase: Succeeded", "phase: Failed")
                .replace("exitCode: 0", "exitCode: 1")
                .replace("reason: Completed", "reason: Error")
            )
            _require(failed, EXIT_CODE, "Exists", None)
            _require(stage, EXIT_CODE, "DoesNotExist", None)
            _require(stage, FINISH_AFTER, "DoesNotExist", None)
            found.append(failed)
        found.append(stage)
    return found


def _require(stage: Manifest, annotation: str, operator: str, values: list[str] | None) -> None:
    condition = {"key": f'.metadata.annotations["{annotation}"]', "operator": operator}
    stage["spec"]["selector"]["matchExpressions"].append({**condition, **({"values": values} if values else {})})


def main() -> None:
    """Read the command line, and record."""
    parser = argparse.ArgumentParser(description="Record the states of the real controllers.")
    parser.add_argument("scenario", nargs="*", choices=[[], *SCENARIOS], help="all of them unless named")
    asyncio.run(record(parser.parse_args().scenario or list(SCENARIOS)))


if __name__ == "__main__":
    main()
