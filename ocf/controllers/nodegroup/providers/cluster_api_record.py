"""Record of the requests that a MachineDeployment fulfils, and which of its Machines belongs to each of them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ocf.errors import ProviderRefusedError
from ocf.objects import Manifest
from ocf.objects.manifest import PREFIX

__all__ = ["DELETE", "RECORD", "Record", "by_age", "created_of", "is_deleting", "is_marked", "name_of"]

DELETE: Final = "cluster.x-k8s.io/delete-machine"
RECORD: Final = f"autoscaling.{PREFIX}/machines"


def name_of(manifest: Manifest) -> str:
    """Return the name of an object."""
    return str(manifest["metadata"]["name"])


def created_of(manifest: Manifest) -> str:
    """Return when an object was created; empty if it does not say so."""
    return str(manifest["metadata"].get("creationTimestamp", ""))


def by_age(machines: Sequence[Manifest]) -> list[str]:
    """Return the names of Machines, the oldest first."""
    return [name for _, name in sorted((created_of(each), name_of(each)) for each in machines)]


def is_deleting(manifest: Manifest) -> bool:
    """Return whether an object is being deleted."""
    return "deletionTimestamp" in manifest["metadata"]


def is_marked(machines: Sequence[Manifest], name: str) -> bool:
    """Return whether a Machine is marked, so that Cluster API deletes it before others."""
    return any(name_of(each) == name and DELETE in (each["metadata"].get("annotations") or {}) for each in machines)


@dataclass(frozen=True, slots=True)
class Record:
    """Record of the requests that one MachineDeployment fulfils, in its annotation.

    Args:
        requests: Machine of each request, by the name of the request; empty as long as it has none.
        others: Machines that existed before the first request, and belong to no request.
        cluster: The uid of the Namespace kube-system of the cluster that made the requests; empty before
            the first request, and in a record that was written without it.
    """

    requests: Mapping[str, str]
    others: frozenset[str]
    cluster: str = ""

    @classmethod
    def read(cls, deployment: Manifest, machines: Sequence[Manifest]) -> "Record":
        """Read the record; a new one, in which all machines are others, if there is none."""
        text = (deployment["metadata"].get("annotations") or {}).get(RECORD)
        if text is None:
            return cls({}, frozenset(name_of(each) for each in machines))
        try:
            found = json.loads(text)
            requests = {str(name): str(machine) for name, machine in found["requests"].items()}
            return cls(requests, frozenset(map(str, found["others"])), str(found.get("cluster", "")))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            # Guessing would give machines to the wrong nodes, and delete them with these.
            where = f"MachineDeployment {name_of(deployment)}: metadata.annotations[{RECORD}]"
            raise ProviderRefusedError(f"{where}: expected the JSON that this provider wrote, got {text!r}") from error

    def text(self) -> str:
        """Return the value of the annotation."""
        owner = {"cluster": self.cluster} if self.cluster else {}
        return json.dumps({"requests": dict(sorted(self.requests.items())), "others": sorted(self.others), **owner})

    def with_machines(self, machines: Sequence[Manifest], replicas: int) -> "Record":
        """Give machines that belong to no request to the requests without one, the oldest first.

        Cluster API replaces a machine that another client deletes; the replacement belongs to the same request.

        Args:
            replicas: `spec.replicas`: as many machines as there are requests and others, but in a rollout.
        """
        existing = {name_of(each) for each in machines}
        lasting = {name_of(each) for each in machines if not is_deleting(each)}
        kept = {name: machine if machine in existing else "" for name, machine in self.requests.items()}
        others = self.others & existing
        taken = {*kept.values(), *others}
        # One that is marked goes next: its request, if it had one, has been deleted.
        free = [name for name in by_age(machines) if name in lasting - taken and not is_marked(machines, name)]
        # First the requests without any machine; that of the others is still being deleted.
        waiting = sorted((machine, name) for name, machine in kept.items() if machine not in lasting)
        given = {name: machine for (_, name), machine in zip(waiting, free, strict=False)}
        # The rest is of a rollout, unless a user has raised `replicas`, or a machine of theirs was replaced.
        more = max(0, replicas - len(kept) - len(others & lasting))
        return replace(self, requests={**kept, **given}, others=others | set(free[len(given) :][:more]))
