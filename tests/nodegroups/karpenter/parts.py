"""Parts of workloads: instance types, pods with rules, pools and DaemonSets."""

import random
from collections.abc import Callable, Iterable
from typing import Any, Final

Json = dict[str, Any]

ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
ARCH: Final = "kubernetes.io/arch"
FAMILY: Final = "karpenter.kwok.sh/instance-family"
GPU: Final = "nvidia.com/gpu"
ZONES: Final = ("zone-a", "zone-b", "zone-c")
FAMILIES: Final = {"c": 2, "s": 4, "m": 8}  # GiB of memory for each CPU
SIZES: Final = (2, 4, 8, 16, 32)
_GIB: Final = 2**30


def types(
    *,
    sizes: Iterable[int] = SIZES,
    arch: str = "amd64",
    per_size: Callable[[int], float] = lambda _: 1.0,
    per_zone: Callable[[str], float] = lambda _: 1.0,
    gpus: bool = False,
) -> list[Json]:
    """Return instance types with the price formula of Karpenter's kwok provider.

    Args:
        sizes: The numbers of CPUs.
        arch: The architecture.
        per_size: What the price is multiplied by for a number of CPUs.
        per_zone: What the price is multiplied by in a zone.
        gpus: Whether each type has one GPU for 8 CPUs, at 1 per hour.
    """
    found = []
    for family, factor in FAMILIES.items():
        for cpus in sizes:
            count = cpus // 8 if gpus else 0
            price = 0.025 * cpus + 0.001 * cpus * factor * _GIB / 1e9 + count
            resources = {"cpu": str(cpus), "memory": f"{cpus * factor}Gi", "pods": "110"}
            found.append(
                {
                    "name": f"{family}{'g' if gpus else ''}-{cpus}x-{arch}-linux",
                    "architecture": arch,
                    "resources": resources | ({GPU: str(count)} if gpus else {}),
                    "prices": {zone: round(price * per_size(cpus) * per_zone(zone), 6) for zone in ZONES},
                }
            )
    return found


def pods(
    name: str,
    count: int,
    cpu: int,
    memory: int,
    *,
    kept: int | None = None,
    labels: Json | None = None,
    requests: Json | None = None,
    container: Json | None = None,
    **spec: Any,
) -> Json:
    """Return equal pods of a ReplicaSet.

    Args:
        name: The name of the ReplicaSet.
        count: Their number.
        cpu: Milli-CPUs that each requests.
        memory: MiB that each requests.
        kept: How many remain after the load has fallen; two fifths by default, every one from another place.
        labels: Labels beside `app`.
        requests: Further requests.
        container: Further fields of the container.
        spec: Further fields of the `spec`.
    """
    names = [f"{name}-{number}" for number in range(count)]
    wanted = max(count * 2 // 5, 1) if kept is None else kept
    # Not the first ones, which lie on the first nodes together.
    order = sorted(range(count), key=lambda number: (number * 37 % 101, number))
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": True}
    wants = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"} | (requests or {})
    return {
        "names": names,
        "kept": sorted(names[number] for number in order[:wanted]),
        "pod": {
            "metadata": {
                "namespace": "default",
                "labels": {"app": name} | (labels or {}),
                "ownerReferences": [owner],
            },
            "spec": {
                "containers": [
                    {"name": "app", "image": "app", "resources": {"requests": wants}} | (container or {}),
                ],
                **spec,
            },
        },
    }


def pool(name: str = "default", *, labels: Json | None = None, taints: list[Json] | None = None) -> Json:
    """Return a pool of nodes, which may use all instance types."""
    return {"name": name, "labels": labels or {}, "taints": taints or []}


def selected(app: str) -> Json:
    """Return the selector of the pods of one ReplicaSet."""
    return {"labelSelector": {"matchLabels": {"app": app}}}


def required(kind: str, app: str, key: str) -> Json:
    """Return required affinity or anti-affinity to the pods of a ReplicaSet."""
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": key, **selected(app)}]}}


def spread(app: str, key: str, skew: int = 1) -> list[Json]:
    """Return a hard topology spread."""
    return [{"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule", **selected(app)}]


def node_affinity(key: str, operator: str, *values: str) -> Json:
    """Return required node affinity."""
    expression = {"key": key, "operator": operator, "values": list(values)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def mixed(seed: int, shapes: int, count: int, *, memory: tuple[int, ...] = (1, 2, 3, 4, 6, 8)) -> list[Json]:
    """Return pods of many shapes; `memory` lists GiB for each CPU."""
    chance = random.Random(seed)  # noqa: S311 (made up, not secret)
    found = []
    for number in range(shapes):
        cpu = chance.choice((100, 250, 400, 500, 750, 1000, 1500, 2000, 3000))
        amount = max(cpu * 1024 * chance.choice(memory) // 1000 // 64 * 64, 64)
        found.append(pods(f"app-{number}", chance.randint(count // 2, count * 3 // 2), cpu, amount))
    return found


def daemon_set(name: str, cpu: int, memory: int, **spec: Any) -> Json:
    """Return a DaemonSet."""
    labels = {"app": name}
    wants = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    return {
        "metadata": {"name": name, "namespace": "kube-system", "uid": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [{"name": "agent", "image": "agent", "resources": {"requests": wants}}],
                    "tolerations": [{"operator": "Exists"}],
                    **spec,
                },
            },
        },
    }
