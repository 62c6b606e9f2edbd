"""Label selectors and field selectors of requests."""

import pytest

from ocf.errors import BadRequestError
from ocf.objects import Manifest
from ocf.schema.builtin import ApiResource, CustomKind, builtin_resource
from ocf_server.apiextensions import custom_resource
from ocf_server.registry.selectors import Predicate, selection, selector_text


def labelled(**labels: str) -> Manifest:
    return {"metadata": {"labels": labels}}


def known(group: str, kind: str) -> ApiResource:
    resource = builtin_resource(group, "v1", kind)
    assert resource is not None
    return resource


def by_labels(text: str) -> Predicate | None:
    return selection(known("", "ConfigMap"), text, "")


def test_all_terms_of_a_label_selector_must_match() -> None:
    predicate = by_labels("app=web,tier in (front,back),!canary")

    assert predicate is not None
    assert predicate(labelled(app="web", tier="back"))
    assert not predicate(labelled(app="web", tier="back", canary="yes"))


@pytest.mark.parametrize("selector", ["", " "])
def test_an_empty_selector_selects_everything(selector: str) -> None:
    assert by_labels(selector) is None


def test_an_object_without_labels_matches_a_selector_for_absent_labels() -> None:
    predicate = by_labels("!app")

    assert predicate is not None
    assert predicate({"metadata": {}})


@pytest.mark.parametrize("selector", ["=a", "a=b,,", "a in b", "a in (b", "a b", "!", "a=b)", "a>x", "a in (b c)", ","])
def test_a_malformed_selector_is_a_bad_request(selector: str) -> None:
    with pytest.raises(BadRequestError, match="unable to parse requirement"):
        by_labels(selector)


POD: Manifest = {
    "metadata": {"name": "a", "namespace": "shop"},
    "spec": {"nodeName": "n1", "restartPolicy": "Always", "schedulerName": "s", "serviceAccountName": "d"},
    "status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]},
}
EVENT: Manifest = {
    "metadata": {"name": "a", "namespace": "shop"},
    "involvedObject": {"kind": "Pod", "name": "a", "namespace": "shop", "uid": "u"},
    "reason": "Started",
    "type": "Normal",
    "source": {"component": "kubelet"},
}


@pytest.mark.parametrize(
    ("kind", "manifest", "selector", "selected"),
    [
        pytest.param("Pod", POD, "spec.nodeName=n1,status.phase!=Failed", True, id="pod by node and phase"),
        pytest.param("Pod", POD, "status.phase==Running", True, id="pod by phase"),
        pytest.param("Pod", POD, "spec.nodeName=", False, id="pod without a node"),
        pytest.param("Pod", {"metadata": {}}, "spec.nodeName=", True, id="a missing field is empty"),
        pytest.param("Pod", POD, "spec.host=n1", True, id="pod by the old name of the node"),
        pytest.param("Pod", POD, "spec.hostNetwork=false", True, id="a missing flag is false"),
        pytest.param("Pod", POD, "status.podIP=10.0.0.1", True, id="pod by address"),
        pytest.param("Pod", POD, "spec.serviceAccountName=d,spec.schedulerName=s", True, id="pod by account"),
        pytest.param("Event", EVENT, "involvedObject.kind=Pod,involvedObject.name=a", True, id="event by object"),
        pytest.param("Event", EVENT, "source=kubelet,reason=Started,type=Normal", True, id="event by source"),
        pytest.param("Event", EVENT, "involvedObject.uid=other", False, id="event of another object"),
        pytest.param("Secret", {"type": "Opaque"}, "type=Opaque", True, id="secret by type"),
        pytest.param("Service", {"spec": {"type": "NodePort"}}, "spec.type=NodePort", True, id="service by type"),
        pytest.param(
            "Namespace", {"status": {"phase": "Active"}}, "status.phase=Active", True, id="namespace by phase"
        ),
        pytest.param("Node", {"spec": {"unschedulable": True}}, "spec.unschedulable=true", True, id="cordoned node"),
        pytest.param("Node", {"spec": {}}, "spec.unschedulable=false", True, id="schedulable node"),
    ],
)
def test_a_field_selector_selects_by_supported_fields(
    kind: str, manifest: Manifest, selector: str, selected: bool
) -> None:
    predicate = selection(known("", kind), "", selector)

    assert predicate is not None
    assert predicate(manifest) is selected


def test_a_job_is_selected_by_its_number_of_successful_pods() -> None:
    predicate = selection(known("batch", "Job"), "", "status.successful=2")

    assert predicate is not None
    assert predicate({"status": {"succeeded": 2}})
    assert not predicate({"status": {}})


@pytest.mark.parametrize(
    ("group", "kind", "selector", "message"),
    [
        pytest.param(
            "",
            "ConfigMap",
            "data.a=bar",
            '"data.a" is not a known field selector: only "metadata.name", "metadata.namespace"',
            id="kind without further fields",
        ),
        pytest.param("", "Pod", "foo=bar", "field label not supported: foo", id="kind with further fields"),
        pytest.param(
            "",
            "Namespace",
            "metadata.namespace=x",
            "field label not supported: metadata.namespace",
            id="namespace of a namespace",
        ),
        pytest.param("batch", "Job", "x=1", 'field label "x" not supported for Job', id="job"),
        pytest.param(
            "events.k8s.io",
            "Event",
            "involvedObject.name=1",
            "field label not supported: involvedObject.name",
            id="field of the other version",
        ),
        pytest.param("", "ConfigMap", "metadata.name=a=b", "invalid field selector: ", id="unescaped"),
    ],
)
def test_an_unsupported_field_selector_is_rejected(group: str, kind: str, selector: str, message: str) -> None:
    """The texts are those of a real API server (1.36.3)."""
    with pytest.raises(BadRequestError) as caught:
        selection(known(group, kind), "", selector)

    assert caught.value.message.startswith(message)


def test_a_custom_kind_supports_name_and_namespace() -> None:
    widget = custom_resource(CustomKind("example.com", "v1", "Widget"))

    assert selection(widget, "", "metadata.name=a") is not None
    assert selection(widget, "", "metadata.namespace=a") is not None
    with pytest.raises(BadRequestError, match=r"^field label not supported: spec\.size$"):
        selection(widget, "", "spec.size=1")


def test_a_custom_kind_of_the_cluster_supports_the_name_only() -> None:
    widget = custom_resource(CustomKind("example.com", "v1", "Widget", namespaced=False))

    assert selection(widget, "", "metadata.name=a") is not None
    with pytest.raises(BadRequestError, match=r"^field label not supported: metadata\.namespace$"):
        selection(widget, "", "metadata.namespace=a")


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        pytest.param(None, "", id="none"),
        pytest.param({}, "", id="empty"),
        pytest.param({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2", id="labels are sorted by name"),
        pytest.param(
            {"matchLabels": {"x": "1"}, "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["q", "p"]}]},
            "a notin (p,q),x=1",
            id="values are sorted",
        ),
        pytest.param({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, "!a", id="absent label"),
    ],
)
def test_selector_text_sorts_labels_and_values(selector: dict[str, object] | None, text: str) -> None:
    assert selector_text(selector) == text
