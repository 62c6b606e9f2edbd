"""Random small clusters, for properties."""

from typing import Any

from hypothesis import strategies as st

from tests.nodegroups.manifests import node, pod

__all__ = ["clusters", "nodes", "pods"]

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

_taints = st.sampled_from([[], [], [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]])


@st.composite
def nodes(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """Return a node in a zone, or in none."""
    labels = draw(st.sampled_from([{ZONE: "a"}, {ZONE: "b"}, {ZONE: "c"}, {}]))
    return node(
        name,
        cpu=str(draw(st.integers(1, 8))),
        memory=f"{draw(st.integers(1, 8))}Gi",
        pods=str(draw(st.sampled_from([2, 5, 110]))),
        labels=labels,
        taints=draw(_taints),
        unschedulable=draw(st.sampled_from([False, False, False, True])),
    )


def _rules(app: str) -> list[dict[str, Any]]:
    selector = {"matchLabels": {"app": app}}
    other = {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [app]}]}
    return [
        {},
        {},
        {"tolerations": [{"key": "dedicated", "operator": "Exists"}]},
        {"nodeSelector": {ZONE: "a"}},
        {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": HOST, "labelSelector": selector}]}}},
        {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": ZONE, "labelSelector": other}]}}},
        {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": ZONE, "labelSelector": selector}]}}},
        *(
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
                ]
            }
            for key in (HOST, ZONE)
        ),
    ]


@st.composite
def pods(draw: st.DrawFn, name: str, on: str = "") -> dict[str, Any]:
    """Return a pod of one of three applications, with at most one rule."""
    app = draw(st.sampled_from(["web", "db", "cache"]))
    rule = draw(st.sampled_from(_rules(app)))
    sizes = {"cpu": f"{draw(st.integers(0, 8)) * 500}m", "memory": f"{draw(st.integers(0, 6)) * 512}Mi"}
    ports = draw(st.sampled_from([[], [], [], [{"containerPort": 80, "hostPort": 80}]]))
    made = pod(name, on=on, labels={"app": app}, **sizes, **rule)
    made["spec"]["containers"][0]["ports"] = ports
    return made


@st.composite
def clusters(draw: st.DrawFn, *, most_nodes: int = 5, most_pods: int = 10) -> dict[str, Any]:
    """Return nodes and pods, some of them on nodes, as the arguments of `Snapshot.of`."""
    names = [f"n{number}" for number in range(draw(st.integers(1, most_nodes)))]
    places = [draw(st.sampled_from(["", *names])) for _ in range(draw(st.integers(0, most_pods)))]
    return {
        "nodes": [draw(nodes(name)) for name in names],
        "pods": [draw(pods(f"p{number}", on)) for number, on in enumerate(places)],
    }
