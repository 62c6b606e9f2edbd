"""Printer of pods, which summarizes the states of the containers in one word."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ocf.objects import Manifest
from ocf_server.http.printers.text import NONE, AgeClock, Cells

__all__ = ["pod"]

_FINISHED: Final = ("Succeeded", "Failed")
_Status = Mapping[str, Any]


@dataclass(slots=True)
class _Tally:
    """Counters over containers."""

    ready: int = 0
    restarts: int = 0
    restarted: str = ""

    def add(self, status: _Status) -> None:
        """Count the restarts of a container."""
        self.restarts += status.get("restartCount", 0)
        finished = (status.get("lastState", {}).get("terminated") or {}).get("finishedAt") or ""
        self.restarted = max(self.restarted, finished)


def pod(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a pod."""
    spec, status = item["spec"], item.get("status", {})
    tally, word = _condition(item)
    total = len(spec.get("containers") or ()) + sum(map(_stays, spec.get("initContainers") or ()))
    restarts = str(tally.restarts)
    if tally.restarts and tally.restarted:
        restarts = f"{restarts} ({clock.since(tally.restarted)} ago)"
    addresses = status.get("podIPs") or [{"ip": status.get("podIP")}]
    return [
        item["metadata"]["name"],
        f"{tally.ready}/{total}",
        word,
        restarts,
        clock.age(item),
        addresses[0].get("ip") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec, status),
    ]


def _stays(container: Mapping[str, Any]) -> bool:
    """Return whether an init container is a sidecar."""
    return container.get("restartPolicy") == "Always"


def _condition(item: Manifest) -> tuple[_Tally, str]:
    spec, status = item["spec"], item.get("status", {})
    conditions = {one["type"]: one for one in status.get("conditions") or ()}
    word = status.get("reason") or status.get("phase", "")
    if conditions.get("PodScheduled", {}).get("reason") == "SchedulingGated":
        word = "SchedulingGated"
    tally, starting = _Tally(), ""
    sidecars = _Tally()
    known = {one["name"]: one for one in spec.get("initContainers") or ()}
    for number, one in enumerate(status.get("initContainerStatuses") or ()):
        tally.add(one)
        sidecar = _stays(known.get(one.get("name"), {}))
        if sidecar:
            sidecars.add(one)
        starting = _starting(one, number, len(known), sidecar=sidecar)
        if starting:
            break
        sidecars.ready += sidecar and bool(one.get("ready")) and bool(one.get("started"))
    if starting and conditions.get("Initialized", {}).get("status") != "True":
        tally.ready, word = sidecars.ready, starting
    else:
        tally, word = sidecars, _running(status, sidecars, starting or word, conditions)
    return tally, _ending(item, word)


def _starting(status: _Status, number: int, total: int, *, sidecar: bool) -> str:
    """Return the status of a pod that waits for an init container; empty if it does not wait."""
    state = status.get("state") or {}
    terminated, waiting = state.get("terminated"), state.get("waiting") or {}
    if (terminated and not terminated.get("exitCode")) or (sidecar and status.get("started")):
        return ""
    if terminated:
        return f"Init:{terminated.get('reason') or _exit(terminated)}"
    if waiting.get("reason") not in (None, "", "PodInitializing"):
        return f"Init:{waiting['reason']}"
    return f"Init:{number}/{total}"


def _exit(terminated: _Status) -> str:
    return f"Signal:{terminated['signal']}" if terminated.get("signal") else f"ExitCode:{terminated.get('exitCode', 0)}"


def _running(status: _Status, tally: _Tally, word: str, conditions: Mapping[str, _Status]) -> str:
    """Count the containers; return the reason of the first container that waits or is terminated."""
    runs = False
    for one in reversed(status.get("containerStatuses") or ()):
        tally.add(one)
        state = one.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting") or {}
        if waiting.get("reason"):
            word = waiting["reason"]
        elif terminated is not None:
            word = terminated.get("reason") or _exit(terminated)
        elif one.get("ready") and "running" in state:
            runs = True
            tally.ready += 1
    if word == "Completed" and runs:
        return "Running" if conditions.get("Ready", {}).get("status") == "True" else "NotReady"
    return word


def _ending(item: Manifest, word: str) -> str:
    status = item.get("status", {})
    if "deletionTimestamp" not in item["metadata"]:
        return word
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return word if status.get("phase") in _FINISHED else "Terminating"


def _gates(spec: Mapping[str, Any], status: _Status) -> str:
    gates = [one["conditionType"] for one in spec.get("readinessGates") or ()]
    if not gates:
        return NONE
    true = {one["type"] for one in status.get("conditions") or () if one.get("status") == "True"}
    return f"{sum(gate in true for gate in gates)}/{len(gates)}"
