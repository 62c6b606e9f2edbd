"""Public reports about HorizontalPodAutoscalers, rebuilt as snapshots: where each comes from, and what caused it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, NamedTuple

from ocf.autoscaling.algorithm import (
    Autoscaler,
    Container,
    History,
    Pod,
    Readiness,
    Recommendation,
    Sample,
    Scale,
    Snapshot,
    Unavailable,
)
from ocf.autoscaling.algorithm.pod_selectors import parse_selector
from ocf.autoscaling.algorithm.snapshot import MetricValues
from ocf.objects import Manifest
from ocf.objects.selectors import LabelSelector
from tests.autoscaling.explain.values import ago

__all__ = [
    "INCIDENTS",
    "MI",
    "Incident",
    "cpu",
    "external",
    "hpa",
    "measured",
    "memory",
    "per_pod",
    "pods",
    "spec",
    "steady",
]

K8S: Final = "https://github.com/kubernetes/kubernetes/issues"
OWN: Final = "ReplicaSet/web-7d4f"


class Incident(NamedTuple):
    """A report.

    Args:
        link: Where it was reported.
        spec: The spec of its HPA.
        cause: Parts of the first sentence.
        levers: Whether a field of the HPA changes anything; otherwise the way out lies elsewhere.
    """

    link: str
    spec: Manifest
    scale: Scale | Unavailable
    pods: Sequence[Pod]
    values: Sequence[MetricValues]
    history: History
    cause: Sequence[str]
    levers: bool = True
    others: Mapping[str, LabelSelector] = {}

    def snapshot(self, spec: Manifest | None = None) -> Snapshot:
        """Return the snapshot, with another spec if one is given."""
        return Snapshot(
            autoscaler=Autoscaler.of(hpa(spec or self.spec)),
            scale=self.scale,
            pods=self.pods,
            metric_values=self.values,
            others=self.others,
        )


def hpa(spec: Manifest) -> Manifest:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"scaleTargetRef": target, **spec}}


def spec(minimum: int, maximum: int, *metrics: Manifest, **behavior: Any) -> Manifest:
    found: dict[str, Any] = {"minReplicas": minimum, "maxReplicas": maximum, "metrics": list(metrics)}
    return {**found, "behavior": behavior} if behavior else found


def cpu(percent: int, name: str = "cpu") -> Manifest:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": name, "target": target}}


def memory(average: str) -> Manifest:
    return {"type": "Resource", "resource": {"name": "memory", "target": _target("averageValue", average)}}


def per_pod(average: str) -> Manifest:
    return {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": _target("averageValue", average)}}


def external(amount: str, kind: str = "averageValue") -> Manifest:
    return {"type": "External", "external": {"metric": {"name": "queue"}, "target": _target(kind, amount)}}


def object_metric(amount: str) -> Manifest:
    described = {"apiVersion": "v1", "kind": "Service", "name": "gateway"}
    found = {"metric": {"name": "requests"}, "describedObject": described, "target": _target("value", amount)}
    return {"type": "Object", "object": found}


def _target(kind: str, amount: str) -> Manifest:
    return {"type": kind[0].upper() + kind[1:], kind: amount}


def pods(
    count: int,
    owner: str = OWN,
    *,
    phase: str = "Running",
    ready: str = "True",
    age: int = 3600,
    since: int | None = None,
    requests: Mapping[str, int] | None = None,
) -> Iterator[Pod]:
    """Yield pods of an owner, named by it and their phase; without a phase of their own they run and are ready."""
    started = ago(age)
    for number in range(count):
        yield Pod(
            name=f"{owner.partition('/')[2] or 'pod'}-{phase.lower()}-{ready.lower()}-{number}",
            phase=phase,
            started=None if phase == "Pending" else started,
            ready=None if phase == "Pending" else Readiness(ready, started if since is None else ago(since)),
            labels={"app": "web"},
            containers=(Container("app", {"cpu": 1000, "memory": 2**20 * 512_000} if requests is None else requests),),
            owner=owner,
        )


def measured(found: Sequence[Pod], value: int, *, window: int = 30) -> dict[str, Sample]:
    return {each.name: Sample(value, ago(10), timedelta(seconds=window)) for each in found}


def steady(count: int) -> History:
    """Return the history of a controller that has recommended one number for a long time."""
    return History(tuple(Recommendation(count, ago(15 * number)) for number in range(1, 21)))


def own(count: int) -> tuple[Pod, ...]:
    return tuple(pods(count))


def simple(
    link: str,
    metric: Manifest,
    value: int,
    cause: Sequence[str],
    *,
    replicas: int,
    limits: tuple[int, int] = (1, 20),
    history: History | None = None,
    **behavior: Any,
) -> Incident:
    """Return a report about a workload with one metric whose pods are all in order."""
    found = own(replicas)
    total = metric["type"] in {"External", "Object"}
    values: MetricValues = (value,) if total else measured(found, value)
    past = steady(replicas) if history is None else history
    scale = Scale(replicas, replicas, "app=web")
    return Incident(link, spec(*limits, metric, **behavior), scale, found, [values], past, cause)


def mixed(
    link: str, metric: Manifest, others: Sequence[Pod], usage: tuple[int, int], cause: Sequence[str], *, replicas: int
) -> Incident:
    """Return a report about other pods beside the target's: the usage of its own, and that of the others."""
    mine = own(replicas)
    running = [each for each in others if each.phase == "Running"]
    values = {**measured(mine, usage[0]), **measured(running, usage[1])}
    scale = Scale(replicas, replicas, "app=web")
    return Incident(link, spec(1, 60, metric), scale, (*mine, *others), [values], steady(replicas), cause)


def failed(
    link: str, message: str, cause: Sequence[str], *, metric: Manifest | None = None, found: Sequence[Pod] = ()
) -> Incident:
    scale, running = Scale(3, 3, "app=web"), tuple(found) or own(3)
    return Incident(link, spec(2, 10, metric or cpu(70)), scale, running, [Unavailable(message)], steady(3), cause)


def rollout(link: str, *, replicas: int, usage: int, target: int, cause: Sequence[str]) -> Incident:
    old, new = own(replicas), tuple(pods(replicas, "ReplicaSet/web-9a1c", age=400, since=390))
    scale = Scale(replicas, 2 * replicas, "app=web")
    values = measured((*old, *new), usage)
    return Incident(link, spec(1, 40, cpu(target)), scale, (*old, *new), [values], steady(replicas), cause)


MI: Final = 2**20 * 1000
HELD: Final = History((Recommendation(6, ago(100)), *(Recommendation(3, ago(15 * at)) for at in range(1, 6))))
POD_POLICY: Final = {"type": "Pods", "value": 4, "periodSeconds": 60}
PERCENT_10: Final = {"policies": [{"type": "Percent", "value": 10, "periodSeconds": 60}]}


def _idle_frontend() -> Incident:
    backend = tuple(pods(2, "ReplicaSet/api-5c6d"))
    return mixed(f"{K8S}/124307", cpu(60), backend, (100, 1900), ("Deployment api", "without them"), replicas=2)


def _crashing_canary() -> Incident:
    canary = tuple(pods(2, "ReplicaSet/web-canary-67c4", ready="False", since=3590))
    return mixed(f"{K8S}/116898", cpu(30), canary, (500, 0), ("Deployment web-canary", "without them 5"), replicas=3)


def _job() -> Incident:
    job = tuple(pods(1, "Job/migrate", requests={}))
    return mixed(
        f"{K8S}/79365", cpu(50), job, (700, 5), ("Job migrate", "with it the metrics fail", "without it 5"), replicas=3
    )


def _succeeded() -> Incident:
    done = tuple(pods(6, phase="Succeeded"))
    return mixed(f"{K8S}/141298", cpu(50), done, (200, 0), ("phase Succeeded", "without them 2"), replicas=4)


def _fifty_pods() -> Incident:
    found = tuple(pods(50, ""))
    scale = Scale(4, 4, "app=web")
    cause = ("matches 50 pods", "Deployment web has 4", "another workload with the same labels")
    return Incident(f"{K8S}/78761", spec(1, 60, cpu(80)), scale, found, [measured(found, 640)], steady(4), cause)


def _observed_count() -> Incident:
    link = "https://github.com/kubernetes/kubernetes/pull/141134"
    cause = ("within the tolerance", "takes the 5 replicas of the status, not the 4")
    return Incident(link, spec(1, 10, external("10")), Scale(4, 5, "app=web"), own(4), [(50_000,)], steady(4), cause)


def _pending() -> Incident:
    waiting = tuple(pods(3, phase="Pending"))
    incident = mixed(f"{K8S}/76187", cpu(50), waiting, (900, 0), ("3 pods that are not ready", "Pending"), replicas=4)
    return incident._replace(scale=Scale(7, 7, "app=web"), history=steady(7))


def _unmeasured() -> Incident:
    found = own(9)
    values = [measured(found[:7], 580)]
    cause = ("58%", "2 pods without a sample", "count as using nothing")
    return Incident(f"{K8S}/96938", spec(1, 20, cpu(50)), Scale(9, 9, "app=web"), found, values, steady(9), cause)


def _starting() -> Incident:
    young = tuple(pods(2, "ReplicaSet/web-7d4f", ready="False", age=60, since=60))
    cause = ("2 pods that are not ready", "count as using nothing")
    incident = mixed(
        "https://github.com/kubernetes/website/issues/12657", cpu(50), young, (900, 1000), cause, replicas=3
    )
    return incident._replace(scale=Scale(5, 5, "app=web"), history=steady(5))


def _startup_cpu() -> Incident:
    young = tuple(pods(1, ready="True", age=45, since=20))
    cause = ("1 pod whose sample began before readiness", "counts as using nothing")
    incident = mixed(f"{K8S}/29989", cpu(50), young, (700, 1900), cause, replicas=2)
    return incident._replace(scale=Scale(3, 3, "app=web"), history=steady(3))


def _failed_rollout() -> Incident:
    stuck = tuple(pods(3, "ReplicaSet/web-9a1c", ready="False", age=3000, since=2995))
    link = "https://www.kannanak.com/p/why-kubernetes-hpa-didnt-scale-when"
    incident = mixed(
        link, cpu(70), stuck, (950, 0), ("a rollout is in progress", "3 of ReplicaSet web-9a1c"), replicas=3
    )
    return incident._replace(scale=Scale(3, 6, "app=web"))


def _two_metrics(link: str, values: tuple[int, int], cause: Sequence[str], replicas: int = 3) -> Incident:
    found = own(replicas)
    limits = spec(2, 5, cpu(50), cpu(50, "memory"))
    usage = [measured(found, values[0]), measured(found, values[1] * MI)]
    return Incident(link, limits, Scale(replicas, replicas, "app=web"), found, usage, steady(replicas), cause)


def _one_fails(link: str, message: str) -> Incident:
    found = own(4)
    values: list[MetricValues] = [measured(found, 100), Unavailable(message)]
    cause = ("one of the metrics failed", "nothing is scaled down", message)
    limits = spec(1, 10, cpu(50), external("10"))
    return Incident(link, limits, Scale(4, 4, "app=web"), found, values, steady(4), cause)


def _unreadable(link: str, message: str) -> Incident:
    limits = spec(1, 10, cpu(80))
    cause = ("cannot be read", message)
    return Incident(link, limits, Unavailable(message), (), [()], History(), cause, levers=False)


def _twins(link: str) -> Incident:
    selected = parse_selector("app=web")
    assert isinstance(selected, LabelSelector)
    found = own(3)
    cause = ("controlled by multiple HPAs", "shop/keda-hpa-web shop/web")
    values = [measured(found, 900)]
    limits = spec(2, 10, cpu(50))
    others = {"keda-hpa-web": selected}
    return Incident(link, limits, Scale(3, 3, "app=web"), found, values, steady(3), cause, others=others)


def _out_of_range(link: str, replicas: int, limits: tuple[int, int], cause: Sequence[str]) -> Incident:
    found = own(replicas)
    scale = Scale(replicas, replicas, "app=web")
    levers = replicas > 0
    return Incident(link, spec(*limits, cpu(50)), scale, found, [measured(found, 300)], steady(replicas), cause, levers)


def _short_of_series(link: str, values: Sequence[int], metric: Manifest, cause: Sequence[str]) -> Incident:
    return Incident(link, spec(1, 20, metric), Scale(3, 3, "app=web"), own(3), [values], steady(3), cause)


def container_cpu(percent: int) -> Manifest:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "app", "target": target}}


def per_object(amount: str) -> Manifest:
    found = object_metric(amount)
    return {**found, "object": {**found["object"], "target": _target("averageValue", amount)}}


def _diluted() -> Incident:
    """A busy container beside an idle one with the same request, of which the sum is compared."""
    both = (Container("app", {"cpu": 1000}), Container("proxy", {"cpu": 1000}))
    found = tuple(replace(each, containers=both) for each in own(3))
    cause = ("cpu is at 48% of the requests, target 50%", "within the tolerance")
    values = [measured(found, 960)]
    return Incident(f"{K8S}/86349", spec(1, 10, cpu(50)), Scale(3, 3, "app=web"), found, values, steady(3), cause)


def _evicted() -> Incident:
    """Failed pods are not counted, so that those that run decide."""
    incident = mixed(
        f"{K8S}/55630", cpu(50), tuple(pods(4, phase="Failed")), (900, 0), ("90%", "1.8 times 2 ready pods"), replicas=2
    )
    return incident._replace(spec=spec(1, 10, cpu(50)))


def _without_selector() -> Incident:
    cause = ("the pods that count are not known", "selector is required")
    values = [(30_000,)]
    link = "https://github.com/knative/eventing/issues/7655"
    scale = Scale(3, 3, "")
    return Incident(link, spec(1, 50, external("100")), scale, (), values, steady(3), cause)


def _selects_no_pod() -> Incident:
    link = "https://github.com/clastix/cluster-api-control-plane-provider-kamaji/issues/359"
    cause = ("no metric could be evaluated", "no pods returned by selector")
    return Incident(link, spec(2, 6, cpu(60)), Scale(3, 3, "kcp=web"), (), [{}], steady(3), cause)


def _stable_and_canary() -> Incident:
    """Both generations of a Rollout, of which the status counts the pods, with a metric per replica."""
    stable, canary = own(10), tuple(pods(10, "ReplicaSet/web-9a1c", age=400, since=390))
    cause = ("within the tolerance", "takes the 20 replicas of the status, not the 10 of the spec")
    link = "https://github.com/argoproj/argo-rollouts/pull/4868"
    scale = Scale(10, 20, "app=web")
    return Incident(link, spec(1, 40, external("1")), scale, (*stable, *canary), [(20_000,)], steady(10), cause)


def _idle_canary() -> Incident:
    link = "https://github.com/argoproj/argo-rollouts/issues/2857"
    incident = rollout(link, replicas=4, usage=900, target=75, cause=("a rollout is in progress", "4 more than the"))
    waiting = {each.name: Sample(0, ago(10), timedelta(seconds=30)) for each in incident.pods[4:]}
    busy = measured(incident.pods[:4], 1500)
    return incident._replace(values=[{**busy, **waiting}], spec=spec(1, 40, cpu(60)))


ROUNDED: Final = ("0.75 times 3 ready pods is 2.25, rounded up to 3",)
INCIDENTS: Final = (
    simple(f"{K8S}/95762", memory("400Mi"), 300 * MI, ("300Mi per pod, target 400Mi", *ROUNDED), replicas=3),
    simple(
        "https://kubernetesquestions.com/questions/62531735", cpu(80, "memory"), 307 * MI, ("59%", "80%", "rounded up"),
        replicas=3,
    ),
    simple(
        "https://github.com/WASdev/websphere-liberty-operator/issues/787", cpu(80, "memory"), 349 * MI,
        ("memory is at 68% of the requests, target 80%", "rounded up to 4"), replicas=4,
    ),
    simple(
        f"{K8S}/91903", cpu(60, "memory"), 200 * MI, ("memory is at 39%", "rounded up to 2"), replicas=2,
    ),
    _two_metrics("https://github.com/kubernetes/autoscaler/issues/1741", (3, 236), ("memory is at 46%", "within the")),
    _two_metrics("https://kubernetesquestions.com/questions/58535208", (20, 420), ("memory is at 82%", "the most"), 5),
    _idle_frontend(),
    _crashing_canary(),
    _job(),
    _succeeded(),
    _fifty_pods(),
    rollout(f"{K8S}/84142", replicas=4, usage=670, target=80, cause=("a rollout is in progress", "without them 4")),
    rollout(f"{K8S}/72775", replicas=1, usage=500, target=80, cause=("rollout", "without it")),
    rollout(f"{K8S}/98914", replicas=3, usage=600, target=75, cause=("6 pods count for 3 replicas", "web-9a1c")),
    rollout(
        "https://github.com/kedacore/keda/issues/5892", replicas=5, usage=450, target=60,
        cause=("10 pods count for 5 replicas", "rollout"),
    ),
    _failed_rollout(),
    _observed_count(),
    _pending(),
    _unmeasured(),
    _starting(),
    _startup_cpu(),
    _one_fails(f"{K8S}/109214", "no metrics returned from external metrics API"),
    _one_fails(f"{K8S}/74052", "the server is currently unable to handle the request"),
    _one_fails(f"{K8S}/61007", "unable to fetch metrics from external metrics API: timeout"),
    failed("https://github.com/kubernetes-sigs/metrics-server/issues/1641", "no metrics returned", ("no metrics",)),
    failed(
        "https://github.com/MicrosoftDocs/azure-docs/issues/9121", "the server could not find the requested resource",
        ("no metric could be evaluated", "the server could not find the requested resource"),
    ),
    Incident(
        "https://github.com/linkerd/linkerd2/issues/1480", spec(1, 10, cpu(50)), Scale(2, 2, "app=web"),
        tuple(pods(2, requests={})), [measured(tuple(pods(2)), 100)], steady(2),
        ("no metric could be evaluated", "missing request for cpu in container app"),
    ),
    Incident(
        "https://github.com/k3s-io/k3s/issues/6148", spec(2, 10, cpu(50)), Scale(2, 2, "app=web"),
        tuple(pods(2, phase="Pending")), [measured(tuple(pods(2, phase="Pending")), 82)], steady(2),
        ("no metric could be evaluated", "pods might be unready"),
    ),
    _unreadable("https://github.com/knative/serving/pull/59", 'no matches for kind "Deployment" in group ""'),
    _twins("https://github.com/kedacore/keda/issues/5825"),
    _twins(f"{K8S}/122059"),
    _out_of_range(f"{K8S}/110278", 0, (1, 10), ("has 0 replicas", "switches autoscaling off")),
    _out_of_range("https://github.com/kedacore/keda/issues/3052", 0, (1, 5), ("has 0 replicas",)),
    _out_of_range(
        "https://github.com/uberswe/createmod.com/pull/1097", 2, (4, 10), ("2 replicas, fewer than minReplicas (4)",)
    ),
    _out_of_range(
        "https://github.com/argoproj/argo-cd/issues/5105", 1, (2, 10), ("1 replica, fewer than minReplicas (2)",)
    ),
    simple(f"{K8S}/59888", cpu(50), 900, ("maxReplicas is 10, and 18 are wanted", "90%"), replicas=10, limits=(1, 10)),
    simple(
        f"{K8S}/100420", cpu(80), 130, ("minReplicas is 2, and 1 is wanted", "13%"), replicas=2, limits=(2, 5),
        history=steady(1),
    ),
    simple(f"{K8S}/116984", external("4"), 41_000, ("4100m per replica", "within the tolerance"), replicas=10),
    simple(
        "https://github.com/kedacore/keda/issues/804", external("10"), 25_000,
        ("6 were recommended at 11:58:20", "scale-down window of 5m", "until 12:03:20", "3 are wanted"),
        replicas=6, history=HELD,
    ),
    simple(
        f"{K8S}/97473", cpu(50), 30, ("policies of behavior.scaleDown (10% in 1m)", "2 are wanted"), replicas=20,
        limits=(2, 20), history=History(()), scaleDown=PERCENT_10,
    ),
    simple(
        f"{K8S}/101371", external("10"), 90_000, ("scale-up window of 5m", "9 are wanted"), replicas=4,
        scaleUp={"stabilizationWindowSeconds": 300},
    ),
    _short_of_series(
        f"{K8S}/110501", (15_000, 15_000, 15_000), external("10"), ("15 per replica", "3 series add up to 45")
    ),
    _short_of_series(f"{K8S}/87797", (15_000,), external("5", "value"), ("15 in total, target 5 in", "3 times 3")),
    _short_of_series(f"{K8S}/79272", (4_002,), external("3"), ("1334m per replica, target 3 per pod", "is 2")),
    _diluted(),
    _evicted(),
    _without_selector(),
    _selects_no_pod(),
    _stable_and_canary(),
    _idle_canary(),
    simple(
        f"{K8S}/105655", cpu(50, "memory"), 60 * MI, ("behavior.scaleDown.selectPolicy is Disabled", "are wanted"),
        replicas=12, history=History(()), scaleDown={"selectPolicy": "Disabled", "stabilizationWindowSeconds": 0},
    ),
    simple(
        f"{K8S}/97468", external("10"), 20_000,
        ("policies of behavior.scaleDown (10% in 1m and 4 pods in 1m)", "2 are wanted"), replicas=20, limits=(2, 20),
        history=History(()),
        scaleDown={"policies": [*PERCENT_10["policies"], POD_POLICY], "selectPolicy": "Min"},
    ),
    simple(
        "https://github.com/amazon-archives/k8s-cloudwatch-adapter/issues/13", external("6", "value"), 7_000,
        ("7 in total, target 6 in total", "1.167 times 5 ready pods"), replicas=5,
    ),
    simple(
        "https://github.com/kedacore/keda/issues/1940", external("75"), 91_000,
        ("45500m per replica, target 75 per pod", "is 2"), replicas=2, history=steady(2),
    ),
    simple(
        "https://github.com/kubernetes-sigs/prometheus-adapter/issues/283", per_object("5"), 10_000,
        ("requests is at 2 per replica, target 5 per pod", "is 2"), replicas=5, history=History(()),
    ),
    simple(
        f"{K8S}/115586", cpu(65), 710, ("71% of the requests, target 65%", "within the tolerance (90% to 110%"),
        replicas=6,
    ),
    simple(
        "https://github.com/argoproj/argo-rollouts/issues/3849", container_cpu(100), 40,
        ("cpu of container app is at 4%", "minReplicas is 3, and 1 is wanted"), replicas=3, limits=(3, 42),
        history=steady(1),
    ),
)  # fmt: skip
