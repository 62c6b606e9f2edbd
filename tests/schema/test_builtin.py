"""The table of built-in kinds."""

from importlib import resources

import pytest

from ocf.schema.builtin import CustomKind, EmptyValue, ListType, MapType, Scalar, StructType, builtin_resource, struct
from ocf.schema.kubernetes import KUBERNETES_VERSION
from ocf_server.apiextensions import custom_resource


@pytest.mark.parametrize(
    ("group", "version", "kind", "plural", "namespaced", "subresources"),
    [
        pytest.param("", "v1", "ConfigMap", "configmaps", True, set(), id="ConfigMap"),
        pytest.param("", "v1", "Namespace", "namespaces", False, {"status"}, id="Namespace"),
        pytest.param("", "v1", "Endpoints", "endpoints", True, set(), id="Endpoints"),
        pytest.param("apps", "v1", "Deployment", "deployments", True, {"status", "scale"}, id="Deployment"),
        pytest.param("apps", "v1", "StatefulSet", "statefulsets", True, {"status", "scale"}, id="StatefulSet"),
        pytest.param("apps", "v1", "DaemonSet", "daemonsets", True, {"status"}, id="DaemonSet"),
        pytest.param(
            "autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", True, {"status"}, id="HPA"
        ),
        pytest.param("batch", "v1", "CronJob", "cronjobs", True, {"status"}, id="CronJob"),
        pytest.param("networking.k8s.io", "v1", "Ingress", "ingresses", True, {"status"}, id="Ingress"),
        pytest.param("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", True, {"status"}, id="PDB"),
        pytest.param("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", False, set(), id="ClusterRole"),
        pytest.param("coordination.k8s.io", "v1", "Lease", "leases", True, set(), id="Lease"),
        pytest.param("storage.k8s.io", "v1", "StorageClass", "storageclasses", False, set(), id="StorageClass"),
        pytest.param("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", False, set(), id="PriorityClass"),
        pytest.param("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", True, set(), id="EndpointSlice"),
        pytest.param("events.k8s.io", "v1", "Event", "events", True, set(), id="Event"),
        pytest.param(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            False,
            {"status"},
            id="CustomResourceDefinition",
        ),
    ],
)
def test_kinds(  # noqa: PLR0917 (columns of the table)
    group: str,
    version: str,
    kind: str,
    plural: str,
    namespaced: bool,
    subresources: set[str],
) -> None:
    resource = builtin_resource(group, version, kind)

    assert resource is not None
    assert (resource.plural, resource.namespaced, set(resource.subresources)) == (plural, namespaced, subresources)
    assert {"get", "list", "watch", "create", "update", "patch", "delete"} <= resource.verbs


@pytest.mark.parametrize("kind", ["TokenReview", "Scale", "DeleteOptions", "Nothing"])
def test_kinds_that_are_not_stored_are_not_in_the_table(kind: str) -> None:
    assert builtin_resource("", "v1", kind) is None


def field(name: str, key: str) -> object:
    return struct(name).fields[key].type


def test_lists_define_how_they_are_merged() -> None:
    ports = field("core.v1.Container", "ports")
    finalizers = field("meta.v1.ObjectMeta", "finalizers")
    args = field("core.v1.Container", "args")

    assert isinstance(ports, ListType)
    assert ports.keys == (("containerPort", 0), ("protocol", "TCP"))
    assert isinstance(finalizers, ListType)
    assert finalizers.keys == ()
    assert isinstance(args, ListType)
    assert args.keys is None


def test_metrics_of_an_autoscaler_are_atomic() -> None:
    metrics = field("autoscaling.v2.HorizontalPodAutoscalerSpec", "metrics")

    assert isinstance(metrics, ListType)
    assert metrics.keys is None


def test_maps_and_structs_define_whether_they_are_atomic() -> None:
    node_selector = field("core.v1.PodSpec", "nodeSelector")
    labels = field("meta.v1.ObjectMeta", "labels")

    assert isinstance(node_selector, MapType)
    assert node_selector.atomic
    assert isinstance(labels, MapType)
    assert not labels.atomic
    assert struct("meta.v1.LabelSelector").atomic
    claim = field("core.v1.PersistentVolumeSpec", "claimRef")
    assert isinstance(claim, StructType)
    assert not claim.atomic, "the field overrides what the type says"


@pytest.mark.parametrize(
    ("name", "key", "scalar"),
    [
        pytest.param("apps.v1.DeploymentSpec", "replicas", Scalar.INT32, id="integer"),
        pytest.param("meta.v1.ObjectMeta", "creationTimestamp", Scalar.TIME, id="time"),
        pytest.param("coordination.v1.LeaseSpec", "renewTime", Scalar.MICRO_TIME, id="time with microseconds"),
        pytest.param("core.v1.ServicePort", "targetPort", Scalar.INT_OR_TEXT, id="number or name"),
        pytest.param("autoscaling.v2.MetricTarget", "averageValue", Scalar.QUANTITY, id="quantity"),
    ],
)
def test_scalars(name: str, key: str, scalar: Scalar) -> None:
    assert field(name, key) is scalar


@pytest.mark.parametrize(
    ("name", "key", "presence"),
    [
        pytest.param("apps.v1.DeploymentSpec", "replicas", EmptyValue.AS_SENT, id="pointer"),
        pytest.param("apps.v1.DeploymentSpec", "paused", EmptyValue.DROP_EMPTY, id="plain"),
        pytest.param("apps.v1.DeploymentSpec", "strategy", EmptyValue.ALWAYS, id="struct"),
        pytest.param("apps.v1.DeploymentSpec", "selector", EmptyValue.NULL, id="pointer that is always there"),
    ],
)
def test_empty_values(name: str, key: str, presence: EmptyValue) -> None:
    assert struct(name).fields[key].presence is presence


def test_a_struct_that_contains_itself_is_built_once() -> None:
    props = struct("apiextensions.v1.JSONSchemaProps")
    inner = props.fields["not"].type

    assert inner is props


def test_a_custom_kind_keeps_every_field() -> None:
    resource = custom_resource(CustomKind("example.com", "v1", "Widget", status=False))

    assert resource.custom
    assert resource.type.extra is not None
    assert not resource.subresources


def test_the_table_is_small_and_names_its_source() -> None:
    folder = resources.files("ocf.schema")

    assert len(folder.joinpath("builtin.json.gz").read_bytes()) < 150_000
    notice = folder.joinpath("builtin.NOTICE").read_text()
    assert KUBERNETES_VERSION in notice
    assert "Apache License" in notice
