"""More workloads: rules together, uneven clusters, odd shapes and odd prices.

Each function makes one workload, always the same.
"""

import random
from typing import Final

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


def _nodes(kind: str, count: int, each: int, app: str) -> list[Json]:
    """Return nodes that exist before, each with some pods of a ReplicaSet."""
    return [
        {
            "name": f"{app}-{number:02d}",
            "type": f"{kind}-amd64-linux",
            "zone": ZONES[number % 3],
            "pool": "default",
            "pods": [f"{app}-{number * each + place}" for place in range(each)],
        }
        for number in range(count)
    ]


def few_pods() -> Json:
    return {"pods": [pods("web", 3, 700, 1500, kept=2), pods("db", 1, 1900, 7000, kept=1)]}


def one_per_node() -> Json:
    """Return pods that take more than half of each small type."""
    return {"pods": [pods("wide", 40, 2600, 5000), pods("tall", 25, 600, 9500)]}


def powers_of_two() -> Json:
    return {"pods": [pods(f"p{cpu}", 64000 // cpu, cpu, cpu * 3) for cpu in (250, 500, 1000, 2000, 4000, 8000)]}


def complements() -> Json:
    """Return pods that fill a node only together: much CPU beside much memory."""
    return {"pods": [pods("cpu", 60, 3000, 1000), pods("memory", 60, 400, 12000), pods("filler", 100, 150, 300)]}


def memory_only() -> Json:
    return {"pods": [pods(f"cache-{size}", 18, 10, size * 1024) for size in (1, 3, 7, 13, 27)]}


def many_kept() -> Json:
    """Return a load that falls by a tenth."""
    return {"pods": [pods(f"app-{n}", 40, 350 + 410 * n, 900 + 1300 * n, kept=36) for n in range(6)]}


def few_kept() -> Json:
    """Return a load of which hardly anything remains."""
    return {"pods": [pods(f"app-{n}", 40, 350 + 410 * n, 900 + 1300 * n, kept=2) for n in range(8)]}


def small_types() -> Json:
    return {"types": types(sizes=(2, 4)), "pods": mixed(21, 25, 8)}


def large_types() -> Json:
    return {"types": types(sizes=(16, 32, 64)), "pods": mixed(22, 25, 10)}


def one_family() -> Json:
    found = [each for each in types(sizes=(2, 4, 8, 16, 32, 48)) if each["name"].startswith("s-")]
    return {"types": found, "pods": mixed(23, 30, 10)}


def full_pods() -> Json:
    """Return so many small pods that their number fills the nodes."""
    made = types()
    for each in made:
        each["resources"]["pods"] = str(min(10 + 6 * int(each["resources"]["cpu"]), 110))
    return {"types": made, "pods": [pods("tiny", 900, 10, 16), pods("web", 60, 700, 1300)]}


def spread_over_both() -> Json:
    """Return pods that spread over zones and hosts at once."""
    return {
        "pods": [
            pods(
                f"app-{n}",
                13 + 5 * n,
                400 + 350 * n,
                1500,
                topologySpreadConstraints=[*spread(f"app-{n}", ZONE), *spread(f"app-{n}", HOST, skew=2)],
            )
            for n in range(4)
        ]
    }


def loose_zone_spread() -> Json:
    loose = [
        pods(name, 29, 300 + 600 * n, 2000, topologySpreadConstraints=spread(name, ZONE, skew=4))
        for n, name in enumerate(("loose-0", "loose-1", "loose-2", "loose-3"))
    ]
    return {"pods": [*loose, *mixed(24, 10, 10)]}


def uneven_zones() -> Json:
    """Return nodes of which most are in one zone, and pods that spread over all."""
    nodes = _nodes("s-8x", 8, 2, "base")
    for node in nodes[:6]:
        node["zone"] = ZONES[0]
    return {
        "nodes": nodes,
        "pods": [
            pods("base", 16, 1900, 3500, kept=16),
            pods("web", 33, 900, 1800, topologySpreadConstraints=spread("web", ZONE)),
            pods("api", 18, 1400, 4000, topologySpreadConstraints=spread("api", ZONE)),
        ],
    }


def idle_nodes() -> Json:
    """Return large nodes with few pods, and a load that they hold nearly alone."""
    return {
        "nodes": _nodes("m-16x", 7, 1, "base"),
        "pods": [pods("base", 7, 900, 2000, kept=7), *mixed(25, 12, 12)],
    }


def spread_in_pools() -> Json:
    taint = {"key": "team", "value": "data", "effect": "NoSchedule"}
    tolerated = [{"key": "team", "operator": "Exists"}]
    return {
        "pools": [pool("default"), pool("data", labels={"team": "data"}, taints=[taint])],
        "pods": [
            pods(
                "store",
                21,
                1600,
                7000,
                tolerations=tolerated,
                nodeSelector={"team": "data"},
                topologySpreadConstraints=spread("store", ZONE),
            ),
            pods("query", 30, 2200, 4100, tolerations=tolerated, nodeSelector={"team": "data"}),
            *mixed(26, 14, 10),
        ],
    }


def apart_and_together() -> Json:
    """Return pairs that share a host, and of which no two share one."""
    pairs = []
    for n in range(4):
        lead, side = f"lead-{n}", f"side-{n}"
        pairs.append(pods(lead, 8, 900 + 400 * n, 2500, affinity=required("podAntiAffinity", lead, HOST)))
        apart = required("podAntiAffinity", side, HOST)
        pairs.append(pods(side, 8, 300, 700, kept=2, affinity={**required("podAffinity", lead, HOST), **apart}))
    return {"pods": [*pairs, pods("web", 70, 500, 900)]}


def heavy_daemon_sets() -> Json:
    """Return DaemonSets that make small nodes expensive."""
    return {
        "daemonSets": [daemon_set("network", 500, 700), daemon_set("storage", 300, 1500), daemon_set("logs", 150, 300)],
        "pods": mixed(27, 22, 12),
    }


def daemon_sets_of_families() -> Json:
    return {
        "daemonSets": [
            daemon_set("large-only", 900, 1000, affinity=node_affinity("karpenter.kwok.sh/instance-cpu", "Gt", "7")),
            daemon_set("compute-only", 200, 200, nodeSelector={FAMILY: "c"}),
        ],
        "pods": mixed(28, 22, 12),
    }


def gpus_and_spread() -> Json:
    return {
        "types": [*types(), *types(sizes=(8, 16, 32), gpus=True)],
        "pods": [
            pods(
                "serve",
                12,
                3500,
                14000,
                requests={GPU: "1"},
                topologySpreadConstraints=spread("serve", ZONE),
            ),
            pods("train", 4, 14000, 50000, requests={GPU: "2"}),
            *mixed(29, 10, 8),
        ],
    }


def random_prices() -> Json:
    chance = random.Random(30)  # noqa: S311 (made up, not secret)
    made = types(sizes=(*SIZES, 64))
    for each in made:
        each["prices"] = {zone: round(price * chance.uniform(0.6, 1.6), 6) for zone, price in each["prices"].items()}
    return {"types": made, "pods": mixed(30, 25, 12)}


def zones_without_types() -> Json:
    """Return types of which each zone offers some."""
    made = types()
    for number, each in enumerate(made):
        del each["prices"][ZONES[number % 3]]
    return {
        "types": made,
        "pods": [
            *mixed(31, 15, 10),
            pods("web", 27, 1200, 2500, topologySpreadConstraints=spread("web", ZONE)),
        ],
    }


def arm_is_cheap() -> Json:
    return {
        "types": [*types(), *types(arch="arm64", per_size=lambda _: 0.6)],
        "pods": [
            *mixed(32, 15, 10),
            *(pods(f"amd-{n}", 20, 600 * n + 300, 1800, nodeSelector={ARCH: "amd64"}) for n in range(4)),
        ],
    }


def budgets() -> Json:
    """Return disruption budgets that keep some nodes."""
    return {
        "budgets": [
            {
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"maxUnavailable": allowed, "selector": {"matchLabels": {"app": name}}},
                "status": {
                    "disruptionsAllowed": allowed,
                    "currentHealthy": 12,
                    "desiredHealthy": 12 - allowed,
                    "expectedPods": 12,
                },
            }
            for name, allowed in (("fixed", 0), ("loose", 6))
        ],
        "pods": [pods("fixed", 12, 1300, 2600, kept=12), pods("loose", 30, 700, 2500, kept=12), *mixed(33, 12, 10)],
    }


MORE: Final = (
    few_pods,
    one_per_node,
    powers_of_two,
    complements,
    memory_only,
    many_kept,
    few_kept,
    small_types,
    large_types,
    one_family,
    full_pods,
    spread_over_both,
    loose_zone_spread,
    uneven_zones,
    idle_nodes,
    spread_in_pools,
    apart_and_together,
    heavy_daemon_sets,
    daemon_sets_of_families,
    gpus_and_spread,
    random_prices,
    zones_without_types,
    arm_is_cheap,
    budgets,
)
"""Functions that make workloads, each by its name."""
