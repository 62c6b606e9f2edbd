"""Workloads that Karpenter and `cheapest` are compared on: instance types, pools, and pods before and after a fall.

Each function makes one workload, always the same. `scripts/record/karpenter.py` describes the fields.
"""

import random
from collections.abc import Callable
from typing import Final

from tests.nodegroups.karpenter.more_workloads import MORE
from tests.nodegroups.karpenter.parts import (
    ARCH,
    FAMILY,
    GPU,
    HOST,
    SIZES,
    ZONE,
    ZONES,
    Json,
    daemon_set,
    mixed,
    node_affinity,
    pods,
    pool,
    required,
    spread,
    types,
)


def one_shape() -> Json:
    return {"pods": [pods("web", 300, 500, 1024)]}


def odd_shape() -> Json:
    return {"pods": [pods("web", 170, 2300, 5200)]}


def many_shapes() -> Json:
    return {"pods": mixed(1, 40, 12)}


def memory_heavy() -> Json:
    return {"pods": mixed(2, 20, 12, memory=(6, 8, 10, 12))}


def cpu_heavy() -> Json:
    return {"pods": mixed(3, 20, 12, memory=(1,))}


def many_small() -> Json:
    return {"pods": [pods("worker", 900, 50, 64), pods("cache", 300, 30, 256)]}


def big_pods() -> Json:
    return {
        "types": types(sizes=(*SIZES, 48, 64)),
        "pods": [pods("model", 14, 30000, 60000), pods("index", 9, 13000, 90000), pods("web", 60, 700, 900)],
    }


def zone_spread() -> Json:
    shapes = ((500, 1024), (1000, 2048), (1500, 8192), (250, 512), (3000, 6144))
    return {
        "pods": [
            pods(f"app-{n}", 31 + n, *each, topologySpreadConstraints=spread(f"app-{n}", ZONE))
            for n, each in enumerate(shapes)
        ]
    }


def host_spread() -> Json:
    return {
        "pods": [
            pods("web", 40, 900, 1500, topologySpreadConstraints=spread("web", HOST, skew=3)),
            pods("api", 24, 1800, 4096, topologySpreadConstraints=spread("api", HOST, skew=2)),
            pods("job", 80, 400, 1024),
        ]
    }


def anti_affinity() -> Json:
    apart = [
        pods(f"db-{n}", 9, 800 + 300 * n, 2048 + 512 * n, affinity=required("podAntiAffinity", f"db-{n}", HOST))
        for n in range(6)
    ]
    return {"pods": [*apart, pods("web", 90, 600, 1100)]}


def zone_anti_affinity() -> Json:
    apart = [
        pods(f"quorum-{n}", 3, 1500, 6000, kept=3, affinity=required("podAntiAffinity", f"quorum-{n}", ZONE))
        for n in range(5)
    ]
    return {"pods": [*apart, pods("web", 120, 500, 1024)]}


def affinity() -> Json:
    together = [
        pods(f"ring-{n}", 10, 700, 1500 + 700 * n, affinity=required("podAffinity", f"ring-{n}", ZONE))
        for n in range(6)
    ]
    beside = pods("sidecar", 12, 300, 300, affinity=required("podAffinity", "ring-0", HOST))
    return {"pods": [*together, beside, pods("web", 70, 800, 1024)]}


def taints() -> Json:
    taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    tolerated = [{"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}]
    return {
        "pools": [pool("general"), pool("batch", labels={"team": "batch"}, taints=[taint])],
        "pods": [
            *mixed(4, 12, 10),
            *(
                pods(f"batch-{n}", 18, 1100 + 700 * n, 3000, tolerations=tolerated, nodeSelector={"team": "batch"})
                for n in range(4)
            ),
        ],
    }


def gpus() -> Json:
    return {
        "types": [*types(), *types(sizes=(8, 16, 32), gpus=True)],
        "pods": [
            pods("train", 14, 6000, 30000, requests={GPU: "1"}),
            pods("tune", 5, 10000, 60000, requests={GPU: "4"}),
            *mixed(5, 15, 10),
        ],
    }


def daemon_sets() -> Json:
    return {
        "daemonSets": [
            daemon_set("logs", 200, 300),
            daemon_set("metrics", 100, 200),
            daemon_set("network", 250, 400),
            daemon_set("memory-agent", 100, 1500, nodeSelector={FAMILY: "m"}),
        ],
        "pods": mixed(6, 25, 10),
    }


def burst() -> Json:
    """Return pods for which a part of the room is there already."""
    nodes = [
        {
            "name": f"old-{number:02d}",
            "type": ("s-8x-amd64-linux", "c-16x-amd64-linux", "m-4x-amd64-linux")[number % 3],
            "zone": ZONES[number % 2],
            "pool": "default",
            "pods": [f"base-{number}"],
        }
        for number in range(24)
    ]
    return {"nodes": nodes, "pods": [pods("base", 24, 1700, 3000, kept=24), *mixed(7, 25, 14)]}


def host_ports() -> Json:
    def port(number: int) -> Json:
        return {"ports": [{"containerPort": number, "hostPort": number}]}

    return {
        "pods": [
            pods("ingress", 12, 1500, 2048, container=port(443)),
            pods("proxy", 8, 500, 1024, container=port(8080)),
            pods("web", 110, 600, 1500),
        ]
    }


def architectures() -> Json:
    arm = types(arch="arm64", per_size=lambda _: 0.8)
    return {
        "types": [*types(), *arm],
        "pods": [
            *(pods(f"amd-{n}", 25, 400 + 500 * n, 1500, nodeSelector={ARCH: "amd64"}) for n in range(3)),
            *(pods(f"arm-{n}", 20, 700 + 600 * n, 2500, nodeSelector={ARCH: "arm64"}) for n in range(3)),
            *(pods(f"any-{n}", 20, 500 + 400 * n, 2000) for n in range(2)),
        ],
    }


def priorities() -> Json:
    return {
        "budgets": [
            {
                "metadata": {"name": "first", "namespace": "default"},
                "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "first"}}},
                "status": {"disruptionsAllowed": 1, "currentHealthy": 12, "desiredHealthy": 11, "expectedPods": 12},
            }
        ],
        "pods": [
            pods("first", 30, 900, 1800, kept=12, priority=1000),
            pods("second", 60, 1200, 3000, priority=10),
            pods("last", 90, 350, 700),
        ],
    }


def zone_prices() -> Json:
    factors: dict[str, float] = dict(zip(ZONES, (1.1, 1.0, 1.25), strict=True))
    return {
        "types": types(per_zone=factors.__getitem__),
        "pods": [
            *mixed(8, 15, 10),
            *(pods(f"pinned-{zone}", 15, 1300, 2700, nodeSelector={ZONE: zone}) for zone in ZONES),
        ],
    }


def large_are_cheap() -> Json:
    return {"types": types(per_size=lambda cpus: (2 / cpus) ** 0.12), "pods": mixed(9, 20, 12)}


def small_are_cheap() -> Json:
    return {"types": types(per_size=lambda cpus: (cpus / 2) ** 0.12), "pods": mixed(10, 20, 12)}


def uneven_prices() -> Json:
    chance = random.Random(11)  # noqa: S311 (made up, not secret)
    return {"types": types(per_size=lambda _: chance.uniform(0.8, 1.25)), "pods": mixed(12, 25, 12)}


def node_affinities() -> Json:
    return {
        "pods": [
            pods("compute", 40, 1500, 2000, affinity=node_affinity(FAMILY, "In", "c")),
            pods("memory", 30, 700, 5000, affinity=node_affinity(FAMILY, "NotIn", "c")),
            pods("large", 20, 1000, 3000, affinity=node_affinity("karpenter.kwok.sh/instance-cpu", "Gt", "15")),
            *mixed(13, 10, 10),
        ]
    }


def everything() -> Json:
    return {
        "daemonSets": [daemon_set("logs", 150, 250), daemon_set("network", 100, 200)],
        "pods": [
            *mixed(14, 20, 10),
            pods("front", 24, 600, 1200, topologySpreadConstraints=spread("front", ZONE)),
            pods("store", 9, 1500, 7000, affinity=required("podAntiAffinity", "store", HOST)),
            pods("ring", 12, 500, 2000, affinity=required("podAffinity", "ring", ZONE)),
            pods("pinned", 10, 900, 900, nodeSelector={ZONE: "zone-b"}),
            pods("huge", 3, 26000, 100000),
        ],
    }


MAKERS: Final[dict[str, Callable[[], Json]]] = {
    make.__name__.replace("_", "-"): make
    for make in (
        one_shape,
        odd_shape,
        many_shapes,
        memory_heavy,
        cpu_heavy,
        many_small,
        big_pods,
        zone_spread,
        host_spread,
        anti_affinity,
        zone_anti_affinity,
        affinity,
        taints,
        gpus,
        daemon_sets,
        burst,
        host_ports,
        architectures,
        priorities,
        zone_prices,
        large_are_cheap,
        small_are_cheap,
        uneven_prices,
        node_affinities,
        everything,
        *MORE,
    )
}
"""What makes each workload, by its name."""


def make(name: str) -> Json:
    """Return a workload with all its fields.

    Args:
        name: Its name.
    """
    fields: Json = {"name": name, "types": types(), "pools": [pool()], "daemonSets": [], "budgets": [], "nodes": []}
    return fields | MAKERS[name]()
