"""Random situations for the scheduler: nodes, the pods on them, and pending pods.

All manifests are as the API server would store them, so the keys of `matchLabelKeys` are merged into the selectors. A
seed always gives the same situations. `features` of a situation names what was added to its otherwise plain pods and
nodes.
"""

import random
from collections.abc import Callable
from functools import partial
from typing import Any, Final

Json = dict[str, Any]

NAMESPACES: Final = {
    "shop": {"team": "a", "stage": "prod"},
    "bank": {"team": "b", "stage": "prod"},
    "lab": {"team": "a"},
    "bare": {},
}
ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
RACK: Final = "example.com/rack"
GPU: Final = "example.com/gpu"


class Maker:
    """Makes situations, always the same ones for a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 (made up, not secret)
        self.nodes: list[Json] = []
        self.pods: list[Json] = []
        self.pending: list[Json] = []
        self.claims: list[Json] = []
        self.volumes: list[Json] = []
        self.classes: list[Json] = []
        self.features: dict[str, Callable[[], None]] = {
            "affinity": self.node_affinity,
            "containers": self.containers,
            "extended": self.extended,
            "ports": self.ports,
            "podcount": self.pod_count,
            "pod-affinity": self.pod_affinity,
            "pod-anti-affinity": self.pod_anti_affinity,
            "resources": self.resources,
            "selector": self.node_selector,
            "spread": self.spread,
            "taints": self.taints,
            "unschedulable": self.unschedulable,
            "volumes": self.pod_volumes,
        }

    def often(self, share: float) -> bool:
        """Answer yes with this probability."""
        return self.random.random() < share

    def one(self, *values: Any) -> Any:
        """Return one of the values."""
        return self.random.choice(values)

    def some(self, low: int, high: int, make: Callable[[], Any]) -> list[Any]:
        """Return a random number of made values."""
        return [make() for _ in range(self.random.randint(low, high))]

    def make(self) -> Json:
        """Return a situation."""
        self.claims, self.volumes, self.classes = [], [], []
        self.nodes = [self.node(f"n{number}") for number in range(self.one(1, 2, 3, 3, 4, 5, 6))]
        self.pods = [self.bound(f"p{number}") for number in range(self.one(0, 1, 2, 3, 4, 6, 8))]
        self.pending = [self.pod(f"q{number}") for number in range(self.one(1, 1, 2, 3))]
        chosen = self.random.sample(sorted(self.features), self.one(1, 1, 1, 1, 2, 2, 2, 3, 3, 4))
        for name in sorted(chosen):
            self.features[name]()
        names = {pod["metadata"]["namespace"] for pod in (*self.pods, *self.pending)}
        uses_selector = {"pod-affinity", "pod-anti-affinity"} & set(chosen)
        namespaces = [
            {"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name, **labels}}}
            for name, labels in NAMESPACES.items()
            if uses_selector or name in names
        ]
        parts = {
            "features": sorted(chosen),
            "nodes": self.nodes,
            "pods": self.pods,
            "pending": self.pending,
            "namespaces": namespaces,
            "claims": self.claims,
            "volumes": self.volumes,
            "classes": self.classes,
        }
        return {name: part for name, part in parts.items() if part}

    def node(self, name: str) -> Json:
        """Return a node; some labels are missing on some."""
        labels = {HOST: name}
        if self.often(0.9):
            labels[ZONE] = self.one("a", "a", "b", "c")
        if self.often(0.3):
            labels[RACK] = self.one("1", "2")
        if self.often(0.4):
            labels["disk"] = self.one("ssd", "hdd")
        if self.often(0.3):
            labels["generation"] = self.one("1", "3", "5", "10", "02", "new")
        allocatable = {"cpu": self.one("2", "4", "3920m"), "memory": self.one("4Gi", "8Gi", "7500M"), "pods": "110"}
        return {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": allocatable}}

    def pod(self, name: str) -> Json:
        """Return a pod of little size."""
        labels = {"app": self.one("web", "web", "db", "job")}
        if self.often(0.4):
            labels["version"] = self.one("1", "2")
        requests = {"cpu": self.one("100m", "250m", "0.5"), "memory": self.one("64Mi", "128M", "1e8")}
        spec = {"containers": [{"name": "app", "resources": {"requests": requests}}]}
        namespace = self.one(*["shop"] * 6, *NAMESPACES)
        return {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": spec}

    def bound(self, name: str) -> Json:
        """Return a pod on a node; some have ended, some are being deleted, and the node of some is gone."""
        pod = self.pod(name)
        pod["spec"]["nodeName"] = "gone" if self.often(0.03) else self.one(*self.nodes)["metadata"]["name"]
        phase = self.one("Running", "Running", "Running", "Running", "Pending", "Succeeded", "Failed")
        pod["status"] = {"phase": phase}
        if self.often(0.1) and phase in ("Running", "Pending"):
            pod["metadata"] |= {"deletionTimestamp": "2026-01-31T12:00:00Z", "deletionGracePeriodSeconds": 30}
        return pod

    def every(self, share: float = 1.0) -> list[Json]:
        """Return the pending pods, and this share of the others."""
        return [*self.pending, *(pod for pod in self.pods if self.often(share))]

    def crowd(self) -> None:
        """Add pods that other pods may have rules about, and label more of the nodes."""
        first = len(self.pods)
        self.pods += [self.bound(f"p{first + number}") for number in range(self.one(0, 2, 4, 6))]
        for node in self.nodes:
            for key, values in ((ZONE, "aabc"), (RACK, "12")):
                if self.often(0.6):
                    node["metadata"]["labels"].setdefault(key, self.one(*values))

    # Resources

    def resources(self) -> None:
        """Request about what nodes have."""
        for pod in self.every(0.6):
            requests = self.first(pod).setdefault("resources", {}).setdefault("requests", {})
            requests |= {
                "cpu": self.one("500m", "1", "1500m", "1.92", "2", "3", "4", "0", "0.1"),
                "memory": self.one("1Gi", "2Gi", "3.5Gi", "4096Mi", "4Gi", "7500M", "8Gi", "0", "500000Ki"),
            }
            for resource in ("cpu", "memory"):
                if self.often(0.1):
                    del requests[resource]
            if self.often(0.2):
                requests["ephemeral-storage"] = self.one("1Gi", "10Gi", "20Gi")
            if self.often(0.2):
                pod["spec"]["overhead"] = self.one({"cpu": "250m"}, {"memory": "1Gi"}, {"cpu": "1", "memory": "512Mi"})
        for node in self.nodes:
            if self.often(0.6):
                node["status"]["allocatable"]["ephemeral-storage"] = self.one("10Gi", "20Gi", "15Gi")
            if self.often(0.04):
                del node["status"]["allocatable"][self.one("cpu", "memory")]

    def containers(self) -> None:
        """Add containers, init containers, sidecars, and requests of the whole pod."""
        for pod in self.every(0.5):
            spec = pod["spec"]
            if self.often(0.5):
                spec["containers"].append(self.container("second"))
            inits = [self.container(f"init{number}") for number in range(self.one(0, 1, 2, 3, 4))]
            for each in inits:
                if self.often(0.4):
                    each["restartPolicy"] = "Always"
            if inits:
                spec["initContainers"] = inits
            if self.often(0.3):
                spec["overhead"] = self.one({"cpu": "250m"}, {"cpu": "1", "memory": "512Mi"})
            if self.often(0.15):
                spec["resources"] = {
                    "requests": self.one({"cpu": "7"}, {"cpu": "7", "memory": "20Gi"}, {"memory": "20Gi"})
                }

    def container(self, name: str) -> Json:
        """Return a container of some size."""
        requests = {"cpu": self.one("500m", "1", "1500m", "2"), "memory": self.one("512Mi", "1Gi", "2Gi", "4Gi")}
        return {"name": name, "resources": {"requests": requests}}

    def extended(self) -> None:
        """Request extended resources and huge pages."""
        for node in self.nodes:
            if self.often(0.6):
                node["status"]["allocatable"][GPU] = self.one("0", "1", "2", "4")
            if self.often(0.3):
                node["status"]["allocatable"]["hugepages-2Mi"] = self.one("64Mi", "128Mi")
        for pod in self.every(0.4):
            self.limit(self.first(pod), GPU, self.one("1", "1", "2", "0", "4"))
            if self.often(0.2):
                self.limit(self.first(pod), "hugepages-2Mi", self.one("64Mi", "128Mi"))
            if self.often(0.2):
                second = {"name": "init", "resources": {"requests": {"cpu": "100m"}}}
                self.limit(second, GPU, self.one("1", "3"))
                pod["spec"].setdefault("initContainers", []).append(second)

    def limit(self, container: Json, resource: str, amount: str) -> None:
        """Request a resource that cannot be overcommitted, so that its limit is the request."""
        resources = container.setdefault("resources", {})
        resources.setdefault("requests", {})[resource] = amount
        resources.setdefault("limits", {})[resource] = amount

    def first(self, pod: Json) -> Json:
        """Return the first container of a pod."""
        found: Json = pod["spec"]["containers"][0]
        return found

    def pod_count(self) -> None:
        """Limit the pods of nodes."""
        for node in self.nodes:
            if self.often(0.7):
                node["status"]["allocatable"]["pods"] = self.one("0", "1", "1", "2", "3")
            elif self.often(0.1):
                del node["status"]["allocatable"]["pods"]

    # Nodes

    def node_selector(self) -> None:
        """Select nodes by label."""
        for pod in self.pending:
            pod["spec"]["nodeSelector"] = self.one(
                {"disk": "ssd"},
                {ZONE: "a"},
                {ZONE: "b", "disk": "hdd"},
                {"absent": "x"},
                {HOST: "n0"},
                {"generation": "3"},
            )

    def node_affinity(self) -> None:
        """Require nodes by affinity."""
        for pod in self.pending:
            terms = self.some(1, 3, self.node_term)
            required = {"nodeSelectorTerms": terms}
            pod["spec"].setdefault("affinity", {})["nodeAffinity"] = {
                "requiredDuringSchedulingIgnoredDuringExecution": required
            }

    def node_term(self) -> Json:
        """Return a term of a node affinity."""
        term: Json = {}
        if self.often(0.85):
            term["matchExpressions"] = self.some(1, 2, self.node_requirement)
        if self.often(0.25):
            term["matchFields"] = self.some(1, self.one(1, 1, 2), self.field_requirement)
        return term

    def field_requirement(self) -> Json:
        """Return a requirement on the name of a node."""
        operator, name = self.one("In", "In", "In", "NotIn"), self.one("n0", "n1", "n2", "absent")
        return {"key": "metadata.name", "operator": operator, "values": [name]}

    def node_requirement(self) -> Json:
        """Return a requirement on the labels of a node."""
        operator = self.one("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
        if operator in ("Gt", "Lt"):
            return {"key": "generation", "operator": operator, "values": [self.one("3", "4", "0", "9")]}
        key = self.one(ZONE, "disk", RACK, "generation")
        if operator in ("Exists", "DoesNotExist"):
            return {"key": key, "operator": operator}
        values = {ZONE: ["a", "b", "c"], "disk": ["ssd", "hdd"], RACK: ["1", "2"], "generation": ["1", "5"]}[key]
        return {"key": key, "operator": operator, "values": self.random.sample(values, self.one(1, 1, 2))}

    def taints(self) -> None:
        """Taint nodes, and tolerate some of the taints."""
        for node in self.nodes:
            if self.often(0.7):
                found = {(taint["key"], taint["effect"]): taint for taint in self.some(1, 3, self.taint)}
                node.setdefault("spec", {})["taints"] = list(found.values())
        for pod in self.pending:
            if self.often(0.7):
                pod["spec"]["tolerations"] = self.some(1, 3, self.toleration)

    def taint(self) -> Json:
        """Return a taint."""
        effect = self.one("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule")
        key = self.one("dedicated", "gpu", "node.kubernetes.io/not-ready")
        value = {"value": self.one("a", "b")} if self.often(0.7) else {}
        return {"key": key, "effect": effect, **value}

    def toleration(self) -> Json:
        """Return a toleration."""
        effect = self.one({}, {"effect": "NoSchedule"}, {"effect": "NoExecute"}, {"effect": "PreferNoSchedule"})
        if self.often(0.1):
            return {"operator": "Exists", **effect}
        key = self.one("dedicated", "gpu", "node.kubernetes.io/not-ready")
        if self.often(0.4):
            return {"key": key, "operator": "Exists", **effect}
        value = {"value": self.one("a", "b")} if self.often(0.8) else {}
        return {"key": key, **({"operator": "Equal"} if self.often(0.6) else {}), **value, **effect}

    def unschedulable(self) -> None:
        """Cordon nodes."""
        for node in self.nodes:
            if self.often(0.6):
                node.setdefault("spec", {})["unschedulable"] = True
        for pod in self.pending:
            if self.often(0.3):
                pod["spec"].setdefault("tolerations", []).append(
                    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
                    | self.one({}, {"effect": "NoSchedule"}, {"effect": "NoExecute"})
                )

    def ports(self) -> None:
        """Use ports of the host; pods on one node use different ones, as the scheduler sees to it."""
        used: set[tuple[str, int, str]] = set()
        for pod in self.every(0.7):
            found: dict[Any, Json] = {}
            for _ in range(self.random.randint(1, 3)):
                port: Json = {"containerPort": self.one(80, 443), "hostPort": self.one(80, 443, 8080)}
                port["protocol"] = self.one("TCP", "TCP", "TCP", "UDP")
                if self.often(0.4):
                    port["hostIP"] = self.one("10.0.0.1", "10.0.0.2", "0.0.0.0")  # noqa: S104 (an address in a manifest)
                place = (pod["spec"].get("nodeName", ""), port["hostPort"], port["protocol"])
                if not place[0] or place not in used:
                    found[place] = port
                used.add(place)
            if not found:
                continue
            where = self.one("containers", "containers", "containers", "initContainers")
            if where == "initContainers":
                pod["spec"].setdefault(where, []).append({"name": "port", "restartPolicy": "Always"})
            pod["spec"][where][-1]["ports"] = list(found.values())

    # Other pods

    def pod_affinity(self) -> None:
        """Require pods nearby."""
        self.crowd()
        for pod in self.every(0.2):
            self.terms(pod, "podAffinity")

    def pod_anti_affinity(self) -> None:
        """Require no such pods nearby, from the pending pods as well as from the others."""
        self.crowd()
        for pod in self.every(0.5):
            self.terms(pod, "podAntiAffinity")

    def terms(self, pod: Json, kind: str) -> None:
        """Add required terms of a pod affinity."""
        terms = self.some(1, 2, partial(self.pod_term, pod))
        pod["spec"].setdefault("affinity", {})[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}

    def pod_term(self, pod: Json) -> Json:
        """Return a term of a pod affinity."""
        term: Json = {"topologyKey": self.one(HOST, HOST, HOST, ZONE, ZONE, ZONE, RACK, "absent")}
        if self.often(0.95):
            term["labelSelector"] = self.label_selector()
        if self.often(0.25):
            term["namespaces"] = self.random.sample(sorted(NAMESPACES), self.one(1, 1, 2))
        if self.often(0.25):
            term["namespaceSelector"] = self.one(
                {},
                {"matchLabels": {"team": "a"}},
                {"matchExpressions": [{"key": "stage", "operator": "Exists"}]},
                {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]},
            )
        if "labelSelector" in term and self.often(0.2):
            field, operator = self.one(("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
            self.merge(pod, term, field, operator)
        return term

    def merge(self, pod: Json, term: Json, field: str, operator: str) -> None:
        """Add label keys to a term, and merge them into its selector as the API server does."""
        if "version" in str(term["labelSelector"]):
            return
        term[field] = ["version"]
        if value := pod["metadata"]["labels"].get("version"):
            expression = {"key": "version", "operator": operator, "values": [value]}
            term["labelSelector"].setdefault("matchExpressions", []).append(expression)

    def label_selector(self) -> Json:
        """Return a selector of pods."""
        found: Json = self.one(
            {"matchLabels": {"app": "web"}},
            {"matchLabels": {"app": "web"}},
            {"matchLabels": {"app": "db"}},
            {"matchLabels": {"app": "web", "version": "1"}},
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]},
            {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["job"]}]},
            {"matchExpressions": [{"key": "version", "operator": "Exists"}]},
            {"matchExpressions": [{"key": "version", "operator": "DoesNotExist"}]},
            {},
        )
        return {name: [*part] if isinstance(part, list) else {**part} for name, part in found.items()}

    def spread(self) -> None:
        """Spread over domains."""
        self.crowd()
        for pod in self.pending:
            found = {}
            for constraint in self.some(1, 2, partial(self.constraint, pod)):
                found[constraint["topologyKey"], constraint["whenUnsatisfiable"]] = constraint
            pod["spec"]["topologySpreadConstraints"] = list(found.values())

    def constraint(self, pod: Json) -> Json:
        """Return a constraint on the spread over domains."""
        found: Json = {
            "maxSkew": self.one(1, 1, 1, 2, 3),
            "topologyKey": self.one(ZONE, ZONE, ZONE, HOST, HOST, HOST, RACK, "absent" if self.often(0.3) else HOST),
            "whenUnsatisfiable": self.one(*["DoNotSchedule"] * 6, "ScheduleAnyway"),
        }
        if self.often(0.95):
            found["labelSelector"] = self.label_selector()
        if found["whenUnsatisfiable"] == "DoNotSchedule" and self.often(0.3):
            found["minDomains"] = self.random.randint(1, 4)
        if self.often(0.3):
            found["nodeAffinityPolicy"] = self.one("Honor", "Ignore")
        if self.often(0.3):
            found["nodeTaintsPolicy"] = self.one("Honor", "Ignore")
        if "labelSelector" in found and self.often(0.2):
            self.merge(pod, found, "matchLabelKeys", "In")
        return found

    # Volumes

    def pod_volumes(self) -> None:
        """Use claims."""
        known = set()
        for pod in self.every(0.3):
            namespace = pod["metadata"]["namespace"]
            for index in range(self.one(1, 1, 2)):
                name = self.one("data", "logs", f"data-{pod['metadata']['name']}") if index == 0 else "more"
                if (namespace, name) not in known and self.often(0.97):
                    self.claim(name, namespace)
                known.add((namespace, name))
                volume = {"name": f"v{index}", "persistentVolumeClaim": {"claimName": name}}
                pod["spec"].setdefault("volumes", []).append(volume)

    def claim(self, name: str, namespace: str) -> None:
        """Make a claim: most are bound to a volume, which only some nodes reach."""
        state = self.one(*["bound"] * 16, "immediate", "waiting", "waiting", "waiting", "lost")
        mode = self.one("ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod")
        storage = {"requests": {"storage": "1Gi"}}
        spec: Json = {"accessModes": [mode], "resources": storage, "storageClassName": self.storage_class(state)}
        claim: Json = {"metadata": {"name": name, "namespace": namespace}, "spec": spec, "status": {"phase": "Pending"}}
        self.claims.append(claim)
        if state not in ("bound", "lost"):
            return
        volume = f"{namespace}-{name}"
        claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        spec["volumeName"] = volume
        claim["status"] = {"phase": "Bound"}
        if state == "bound":
            self.volumes.append(self.volume(volume, claim))

    def storage_class(self, state: str) -> str:
        """Return the name of a storage class, which is made."""
        waits = state == "waiting" or (state == "bound" and self.often(0.5))
        zone = self.one("a", "b", "x")
        topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}]
        limited = state == "waiting" and self.often(0.6)
        name = "-".join(["later" if waits else "now", *([zone] if limited else [])])
        made = {
            "metadata": {"name": name},
            "provisioner": "disk.example.com",
            "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
            **({"allowedTopologies": topologies} if limited else {}),
        }
        if made not in self.classes:
            self.classes.append(made)
        return name

    def volume(self, name: str, claim: Json) -> Json:
        """Return a volume that is bound to a claim."""
        metadata: Json = {"name": name}
        spec: Json = {
            "capacity": {"storage": "1Gi"},
            "accessModes": claim["spec"]["accessModes"],
            "storageClassName": claim["spec"]["storageClassName"],
            "claimRef": {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
            | {key: claim["metadata"][key] for key in ("namespace", "name")},
            "csi": {"driver": "disk.example.com", "volumeHandle": name},
        }
        if self.often(0.35):
            key = self.one(ZONE, ZONE, "failure-domain.beta.kubernetes.io/zone")
            metadata["labels"] = {key: self.one("a", "b", "a__b", "x")}
        if self.often(0.6):
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": self.some(1, 2, self.volume_term)}}
        return {"metadata": metadata, "spec": spec, "status": {"phase": "Bound"}}

    def volume_term(self) -> Json:
        """Return a term of a volume's node affinity."""
        return {"matchExpressions": self.some(1, 2, self.node_requirement)}
