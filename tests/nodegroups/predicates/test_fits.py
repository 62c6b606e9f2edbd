"""Each filter of the scheduler with its text."""

from typing import Any

import pytest

from ocf.nodegroups.predicates import fits
from ocf.nodegroups.predicates import reasons as texts
from ocf.nodegroups.snapshot import ClusterSnapshot
from tests.nodegroups.manifests import node, pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOST = "kubernetes.io/hostname"


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def near(**term: Any) -> dict[str, Any]:
    return {
        "podAffinity": {REQUIRED: [{"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOST, **term}]}
    }


def far(**term: Any) -> dict[str, Any]:
    return {"podAntiAffinity": near(**term)["podAffinity"]}


def on_nodes(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def spread(**constraint: Any) -> list[dict[str, Any]]:
    selector = {"matchLabels": {"app": "web"}}
    return [
        {
            "maxSkew": 1,
            "topologyKey": HOST,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": selector,
            **constraint,
        }
    ]


def port(**parts: Any) -> list[dict[str, Any]]:
    return [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 80, **parts}]}]


def verdict(wanted: dict[str, Any], *others: dict[str, Any], **first: Any) -> tuple[str, ...]:
    """Return the reasons for node n1, beside an empty node n2."""
    snapshot = ClusterSnapshot.of(nodes=[node("n1", **first), node("n2")], pods=[wanted, *others])
    found = fits(snapshot.pods["default/p"], "n1", snapshot)
    return found.reasons if found else ()


TAINT = {"key": "a", "value": "b", "effect": "NoSchedule"}
GPU: dict[str, Any] = {"containers": [{"resources": {"requests": {"nvidia.com/gpu": "1"}}}]}
POD, OTHER = pod(), pod("other", on="n1")


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        pytest.param(verdict(POD), (), id="fits"),
        pytest.param(verdict(pod(cpu="4", memory="8Gi")), (), id="exactly fits"),
        pytest.param(verdict(pod(cpu="4001m")), ("Insufficient cpu",), id="cpu"),
        pytest.param(
            verdict(pod(cpu="5", memory="9Gi"), pods="0"),
            ("Too many pods", "Insufficient cpu", "Insufficient memory"),
            id="several resources",
        ),
        pytest.param(verdict(POD, OTHER, pods="1"), (texts.TOO_MANY_PODS,), id="number of pods"),
        pytest.param(verdict(pod(cpu="0", memory="0"), pod("big", cpu="9", on="n1")), (), id="nothing requested"),
        pytest.param(verdict(pod(**GPU)), ("Insufficient nvidia.com/gpu",), id="extended resource"),
        pytest.param(verdict(pod(**GPU), allocatable={"nvidia.com/gpu": "1"}), (), id="enough of it"),
        pytest.param(verdict(POD, unschedulable=True), (texts.UNSCHEDULABLE,), id="cordoned"),
        pytest.param(
            verdict(pod(tolerations=[{"operator": "Exists"}]), unschedulable=True, taints=[TAINT]),
            (),
            id="tolerates all",
        ),
        pytest.param(verdict(POD, taints=[TAINT]), (texts.TAINT,), id="taint"),
        pytest.param(verdict(POD, taints=[TAINT | {"effect": "PreferNoSchedule"}]), (), id="soft taint"),
        pytest.param(verdict(pod(tolerations=[{"key": "a", "value": "b"}]), taints=[TAINT]), (), id="equal toleration"),
        pytest.param(
            verdict(pod(tolerations=[{"key": "a", "value": "c"}]), taints=[TAINT]), (texts.TAINT,), id="other value"
        ),
        pytest.param(
            verdict(pod(tolerations=[{"key": "a", "operator": "Gt", "value": "1"}]), taints=[TAINT | {"value": "2"}]),
            (texts.TAINT,),
            id="comparison operators are off",
        ),
        pytest.param(verdict(pod(nodeSelector={"disk": "ssd"})), (texts.NODE_AFFINITY,), id="node selector"),
        pytest.param(
            verdict(pod(nodeSelector={"disk": "ssd"}), labels={"disk": "ssd"}), (), id="node selector matches"
        ),
        *(
            pytest.param(
                verdict(
                    pod(affinity=on_nodes({"matchExpressions": [requirement]})), labels={"cores": "8", "disk": "ssd"}
                ),
                () if ok else (texts.NODE_AFFINITY,),
                id=f"{requirement['key']} {requirement['operator']} {requirement['values']}",
            )
            for requirement, ok in [
                (expression("disk", "In", "ssd", "nvme"), True),
                (expression("disk", "In", "nvme"), False),
                (expression("disk", "NotIn", "nvme"), True),
                (expression("disk", "NotIn", "ssd"), False),
                (expression("gone", "NotIn", "ssd"), True),
                (expression("disk", "Exists"), True),
                (expression("gone", "Exists"), False),
                (expression("gone", "DoesNotExist"), True),
                (expression("disk", "DoesNotExist"), False),
                (expression("cores", "Gt", "7"), True),
                (expression("cores", "Gt", "8"), False),
                (expression("cores", "Lt", "9"), True),
                (expression("disk", "Lt", "9"), False),
                (expression("cores", "Gt", "many"), False),
            ]
        ),
        pytest.param(verdict(pod(affinity=on_nodes({}))), (texts.NODE_AFFINITY,), id="an empty term matches no node"),
        pytest.param(
            verdict(
                pod(
                    affinity=on_nodes(
                        {"matchExpressions": [expression("a", "Exists")]},
                        {"matchExpressions": [expression("a", "DoesNotExist")]},
                    )
                )
            ),
            (),
            id="terms are alternatives",
        ),
        pytest.param(
            verdict(pod(affinity=on_nodes({"matchFields": [expression("metadata.name", "In", "n1")]}))),
            (),
            id="by name",
        ),
        pytest.param(
            verdict(pod(affinity=on_nodes({"matchFields": [expression("metadata.name", "In", "n2")]}))),
            ("node(s) didn't satisfy plugin(s) [NodeAffinity]",),
            id="another name",
        ),
        pytest.param(
            verdict(pod(affinity=on_nodes({"matchFields": [expression("metadata.name", "NotIn", "n1")]}))),
            (texts.NODE_AFFINITY,),
            id="not this name",
        ),
        pytest.param(
            verdict(
                pod(
                    affinity=on_nodes(
                        {"matchFields": [expression("metadata.name", "In", name) for name in ("n1", "n2")]}
                    )
                )
            ),
            ("pod affinity terms conflict",),
            id="conflicting names",
        ),
        pytest.param(
            verdict(pod(containers=port()), pod("o", containers=port(), on="n1")), (texts.PORTS,), id="host port"
        ),
        pytest.param(
            verdict(pod(containers=port()), pod("o", containers=port(), on="n2")), (), id="host port elsewhere"
        ),
        pytest.param(
            verdict(pod(containers=port(protocol="UDP")), pod("o", containers=port(), on="n1")), (), id="other protocol"
        ),
        pytest.param(
            verdict(pod(containers=port(hostIP="10.0.0.1")), pod("o", containers=port(hostIP="10.0.0.2"), on="n1")),
            (),
            id="other address",
        ),
        pytest.param(
            verdict(pod(containers=port(hostIP="10.0.0.1")), pod("o", containers=port(), on="n1")),
            (texts.PORTS,),
            id="all addresses",
        ),
        pytest.param(
            verdict(pod(affinity=near(), labels={"app": "db"})), (texts.AFFINITY,), id="affinity without other pods"
        ),
        pytest.param(verdict(pod(affinity=near())), (), id="affinity to itself"),
        pytest.param(
            verdict(pod(affinity=near()), pod("o", on="n2")), (texts.AFFINITY,), id="affinity to a pod on another node"
        ),
        pytest.param(verdict(pod(affinity=near()), OTHER), (), id="affinity to a pod on the node"),
        pytest.param(
            verdict(pod(affinity=near()), pod("o", on="n1", namespace="shop"), pod("q", on="n2")),
            (texts.AFFINITY,),
            id="affinity to another namespace",
        ),
        pytest.param(
            verdict(pod(affinity=near(namespaces=["shop"])), pod("o", on="n1", namespace="shop")),
            (),
            id="named namespace",
        ),
        pytest.param(
            verdict(pod(affinity=near(namespaceSelector={})), pod("o", on="n1", namespace="shop")),
            (),
            id="all namespaces",
        ),
        pytest.param(
            verdict(pod(affinity=near(topologyKey="zone")), pod("o", on="n1")), (texts.AFFINITY,), id="no such topology"
        ),
        pytest.param(verdict(pod(affinity=far()), OTHER), (texts.ANTI_AFFINITY,), id="anti-affinity"),
        pytest.param(verdict(pod(affinity=far()), pod("o", on="n2")), (), id="anti-affinity to a pod elsewhere"),
        pytest.param(
            verdict(POD, pod("o", on="n1", affinity=far(), labels={"app": "db"})),
            (texts.EXISTING_ANTI_AFFINITY,),
            id="anti-affinity of a pod on the node",
        ),
        pytest.param(
            verdict(
                pod(affinity=far(matchLabelKeys=["version"]), labels={"app": "web", "version": "2"}),
                pod("o", on="n1", labels={"app": "web", "version": "1"}),
            ),
            (),
            id="anti-affinity to the same version only",
        ),
        pytest.param(verdict(pod(topologySpreadConstraints=spread()), OTHER), (texts.SPREAD,), id="spread over nodes"),
        pytest.param(verdict(pod(topologySpreadConstraints=spread(maxSkew=2)), OTHER), (), id="larger skew"),
        pytest.param(
            verdict(pod(topologySpreadConstraints=spread(whenUnsatisfiable="ScheduleAnyway")), OTHER),
            (),
            id="soft spread",
        ),
        pytest.param(
            verdict(pod(topologySpreadConstraints=spread(topologyKey="zone")), OTHER),
            (texts.SPREAD_LABEL,),
            id="no zone",
        ),
        pytest.param(
            verdict(pod(topologySpreadConstraints=spread(), nodeSelector={HOST: "n1"}), OTHER),
            (),
            id="nodes that the pod cannot use do not count",
        ),
        pytest.param(
            verdict(
                pod(topologySpreadConstraints=spread(nodeAffinityPolicy="Ignore"), nodeSelector={HOST: "n1"}), OTHER
            ),
            (texts.SPREAD,),
            id="by default",
        ),
        pytest.param(
            verdict(pod(topologySpreadConstraints=spread(minDomains=3)), OTHER, pod("o", on="n2")),
            (texts.SPREAD,),
            id="fewer domains than wanted",
        ),
        pytest.param(
            verdict(
                pod(
                    topologySpreadConstraints=spread(matchLabelKeys=["version"]), labels={"app": "web", "version": "2"}
                ),
                pod("o", on="n1", labels={"app": "web", "version": "1"}),
            ),
            (),
            id="spread of one version",
        ),
        pytest.param(
            verdict(pod(cpu="5", nodeSelector={"a": "b"}), taints=[TAINT]),
            (texts.TAINT,),
            id="the first filter reports",
        ),
    ],
)
def test_the_first_filter_that_rejects_gives_its_reasons(reasons: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert reasons == expected


def claim(**parts: Any) -> dict[str, Any]:
    spec = {"volumeName": "v", "storageClassName": "fast", "accessModes": ["ReadWriteOnce"], **parts.pop("spec", {})}
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    metadata = {"name": "data", "namespace": "default", "annotations": parts.pop("annotations", bound)}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Bound"}}


def volume(labels: dict[str, str] | None = None, *, host: str = "") -> dict[str, Any]:
    terms = [{"matchExpressions": [expression(HOST, "In", host)]}]
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if host else {}
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "fast", **affinity}
    return {"metadata": {"name": "v", "labels": labels or {}}, "spec": spec, "status": {"phase": "Available"}}


UNBOUND = claim(spec={"volumeName": "", "resources": {"requests": {"storage": "1Gi"}}}, annotations={})
LATE = {
    "metadata": {"name": "fast"},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}
CSI = LATE | {"provisioner": "csi.example.com"}
TOPOLOGY = {"allowedTopologies": [{"matchLabelExpressions": [{"key": HOST, "values": ["n2"]}]}]}
ZONE = "topology.kubernetes.io/zone"
SHARED = claim(spec={"accessModes": ["ReadWriteOncePod"]})
USES: dict[str, Any] = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param({}, 'persistentvolumeclaim "data" not found', id="no claim"),
        pytest.param({"claims": [claim()]}, 'persistentvolume "v" not found', id="no volume"),
        pytest.param({"claims": [claim()], "volumes": [volume()]}, None, id="bound"),
        pytest.param({"claims": [claim()], "volumes": [volume(host="n1")]}, None, id="bound to the node"),
        pytest.param(
            {"claims": [claim()], "volumes": [volume(host="n2")]}, texts.NODE_CONFLICT, id="bound to another node"
        ),
        pytest.param({"claims": [claim()], "volumes": [volume({ZONE: "a__b"})]}, None, id="in the zone"),
        pytest.param({"claims": [claim()], "volumes": [volume({ZONE: "b"})]}, texts.ZONE, id="in another zone"),
        pytest.param({"claims": [UNBOUND]}, "pod has unbound immediate PersistentVolumeClaims", id="not bound"),
        pytest.param({"claims": [UNBOUND], "storage_classes": [LATE]}, texts.BIND_CONFLICT, id="nothing to bind"),
        pytest.param(
            {"claims": [UNBOUND], "storage_classes": [LATE], "volumes": [volume(host="n1")]}, None, id="can be bound"
        ),
        pytest.param({"claims": [UNBOUND], "storage_classes": [CSI]}, None, id="can be provisioned"),
        pytest.param(
            {"claims": [UNBOUND], "storage_classes": [CSI | TOPOLOGY]}, texts.BIND_CONFLICT, id="provisioned elsewhere"
        ),
        pytest.param({"claims": [SHARED], "volumes": [volume()]}, None, id="for one pod"),
        pytest.param(
            {"claims": [SHARED], "volumes": [volume()], "pods": [pod("o", on="n2", **USES)]}, texts.IN_USE, id="in use"
        ),
    ],
)
def test_volumes(objects: dict[str, Any], expected: str | None) -> None:
    others = objects.pop("pods", [])
    snapshot = ClusterSnapshot.of(nodes=[node(labels={ZONE: "a"}), node("n2")], pods=[pod(**USES), *others], **objects)
    found = fits(snapshot.pods["default/p"], "n1", snapshot)
    assert (found and found.reasons[0]) == expected


def test_a_pod_does_not_stand_in_its_own_way() -> None:
    snapshot = ClusterSnapshot.of(nodes=[node(cpu="1")], pods=[pod(on="n1", affinity=far())])
    assert fits(snapshot.pods["default/p"], "n1", snapshot) is None
