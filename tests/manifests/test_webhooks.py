"""Where webhooks apply, in each format of an installation, and what `ocf manifests` notes about them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from kubernetes.client import V1Namespace, V1Node, V1Pod

from ocf.errors import ConfigError
from ocf.manifests import Format, render
from ocf.objects import Manifest
from ocf.objects.documents import load_document, load_documents
from ocf.runtime.admission import AdmissionRequest, Match, Operation, Webhook
from tests.manifests.support import installation

if TYPE_CHECKING:
    from ocf.testing.envtest.binaries import Programs

SYSTEM: Final = ["kube-system", "kube-public", "kube-node-lease"]


def allow(_: AdmissionRequest[Any]) -> None:
    """Allow each request."""


def pods(**options: Any) -> Webhook[V1Pod]:
    return Webhook.of(V1Pod, validating=[allow], **options)


def entries(text: str) -> dict[str, Manifest]:
    """Return the webhooks in a file by their names."""
    return {one["name"]: one for each in load_documents(text) for one in each["webhooks"]}


def kustomized(*guards: Webhook[Any], **options: Any) -> dict[str, Manifest]:
    files = render(installation(webhooks=False, guards=guards, **options), Format.KUSTOMIZE).generated
    return entries(files["base/webhooks.yaml"])


def left_out(*names: str) -> Manifest:
    return {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(names)}


def test_a_webhook_has_all_that_was_declared() -> None:
    match = Match(
        operations=[Operation.UPDATE, Operation.DELETE],
        subresources=["", "status"],
        scope="Namespaced",
        namespaces={"matchLabels": {"team": "web"}},
        objects={"matchLabels": {"app": "web"}},
        conditions={"not-a-node": "!('system:nodes' in request.userInfo.groups)"},
        policy="Exact",
    )
    guard = Webhook.of(
        V1Pod, mutating=[allow], name="sidecar", match=match, failure_policy="Ignore", reinvoke=True, side_effects=True
    )
    (found,) = kustomized(guard).values()
    config = found.pop("clientConfig")
    assert config["service"]["path"] == "/default/core/pods/sidecar"
    assert found == {
        "name": "default.sidecar.pods.core.k8s.io",
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["UPDATE", "DELETE"],
                "resources": ["pods", "pods/status"],
                "scope": "Namespaced",
            }
        ],
        "namespaceSelector": {
            "matchLabels": {"team": "web"},
            "matchExpressions": [left_out(*SYSTEM, "shops")],
        },
        "objectSelector": {"matchLabels": {"app": "web"}},
        "failurePolicy": "Ignore",
        "matchPolicy": "Exact",
        "reinvocationPolicy": "IfNeeded",
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": 10,
        "admissionReviewVersions": ["v1"],
        "matchConditions": [{"name": "not-a-node", "expression": "!('system:nodes' in request.userInfo.groups)"}],
    }


SHOPS: Final[Webhook[Manifest]] = Webhook("example.com", "v1", "Shop", "shops")
EVERYWHERE: Final = Match(everywhere=True)


@pytest.mark.parametrize(
    ("guard", "selector"),
    [
        pytest.param(pods(), {"matchExpressions": [left_out(*SYSTEM, "ops")]}, id="a built-in kind"),
        pytest.param(pods(match=EVERYWHERE), None, id="everywhere"),
        pytest.param(
            Webhook.of(V1Namespace, validating=[allow]),
            {"matchExpressions": [left_out(*SYSTEM, "ops")]},
            id="namespaces",
        ),
        pytest.param(Webhook.of(V1Node, validating=[allow]), None, id="objects without a namespace"),
        pytest.param(
            Webhook("networking.k8s.io", "v1", "Ingress", "ingresses"),
            {"matchExpressions": [left_out(*SYSTEM, "ops")]},
            id="another group",
        ),
        pytest.param(
            Webhook("policy", "v9", "PodDisruptionBudget", "poddisruptionbudgets"),
            {"matchExpressions": [left_out(*SYSTEM, "ops")]},
            id="a later version",
        ),
        pytest.param(
            Webhook("gateway.networking.k8s.io", "v1", "Gateway", "gateways"), None, id="a group of the project"
        ),
        pytest.param(SHOPS, None, id="a custom resource"),
        pytest.param(
            Webhook("example.com", "v1", "Shop", "shops", match=Match(everywhere=False)),
            {"matchExpressions": [left_out(*SYSTEM, "ops")]},
            id="a custom resource, not everywhere",
        ),
    ],
)
@pytest.mark.promise("webhook-namespaces", runs="the configurations of built-in kinds and of custom resources")
def test_the_namespaces_of_kubernetes_and_of_the_operator_are_left_out(
    guard: Webhook[Any], selector: Manifest | None
) -> None:
    """In one list: tools that look for webhooks which block kube-system read a single one.

    https://github.com/szlabs/harbor-automation-4k8s/issues/14, https://github.com/kyverno/kyverno/issues/16177,
    https://github.com/kubernetes-sigs/kubebuilder/pull/5395, https://github.com/k3s-io/k3s/issues/6815,
    https://github.com/open-policy-agent/gatekeeper/pull/4348
    """
    (found,) = kustomized(guard, namespace="ops").values()
    assert found.get("namespaceSelector") == selector


def test_a_chart_leaves_out_the_namespace_of_its_release_and_those_of_its_values() -> None:
    files = render(installation(guards=[pods()]), Format.HELM).generated
    values = "toYaml (append .Values.webhooks.excludedNamespaces .Release.Namespace | uniq)"
    assert files["templates/webhooks.yaml"].count(f"      values: {{{{- {values} | nindent 6 }}}}\n") == 1
    assert load_document(files["values.yaml"])["webhooks"] == {"excludedNamespaces": SYSTEM}
    assert "excludedNamespaces" in json.loads(files["values.schema.json"])["properties"]["webhooks"]["properties"]


@pytest.mark.parametrize("guards", [[], [pods(match=EVERYWHERE)]], ids=["custom resources", "everywhere"])
def test_a_chart_whose_webhooks_leave_nothing_out_has_no_such_value(guards: list[Webhook[Any]]) -> None:
    files = render(installation(guards=guards), Format.HELM).generated
    assert "webhooks" not in load_document(files["values.yaml"])


def test_an_overlay_with_another_namespace_leaves_that_one_out(tmp_path: Path, envtest_programs: Programs) -> None:
    rendering = render(installation(guards=[pods(), Webhook.of(V1Pod, mutating=[allow], name="b")]), Format.KUSTOMIZE)
    for path, text in {**rendering.generated, **rendering.initial}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    overlay = tmp_path / "overlays" / "production"
    with (overlay / "kustomization.yaml").open("a", encoding="utf-8") as file:
        file.write("namespace: elsewhere\n")
    built = subprocess.run(  # noqa: S603 (ours)
        [str(envtest_programs.folder / "kubectl"), "kustomize", str(overlay)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = [one for one in load_documents(built.stdout) if "webhooks" in one]
    selectors = [one["namespaceSelector"] for each in found for one in each["webhooks"] if "namespaceSelector" in one]
    assert selectors == [{"matchExpressions": [left_out(*SYSTEM, "elsewhere")]}] * 2


@pytest.mark.parametrize(
    ("guard", "problem"),
    [
        pytest.param(pods(), "core.k8s.io selects namespaces, which OLM does by its OperatorGroup alone", id="default"),
        pytest.param(
            pods(match=Match(namespaces={"matchLabels": {"a": "b"}}, everywhere=True)),
            "selects namespaces",
            id="selector",
        ),
        pytest.param(
            pods(match=Match(conditions={"a": "true"}, everywhere=True)), "has match conditions", id="conditions"
        ),
    ],
)
def test_what_a_bundle_cannot_say_of_a_webhook_is_an_error(guard: Webhook[Any], problem: str) -> None:
    """OLM has no field for either, and sets the selector of namespaces itself.

    https://github.com/kubevirt/ssp-operator/pull/879
    """
    with pytest.raises(ConfigError, match=problem):
        render(installation(guards=[guard]), Format.OLM)


def test_a_bundle_has_all_else() -> None:
    match = Match(objects={"matchLabels": {"a": "b"}}, everywhere=True)
    guard = Webhook.of(V1Pod, mutating=[allow], match=match, reinvoke=True, failure_policy="Ignore")
    files = render(installation(webhooks=False, guards=[guard]), Format.OLM).generated
    version = load_document(files["manifests/shops.clusterserviceversion.yaml"])
    (found,) = version["spec"]["webhookdefinitions"]
    assert found["objectSelector"] == match.objects
    assert (found["reinvocationPolicy"], found["failurePolicy"]) == ("IfNeeded", "Ignore")
    assert (found["generateName"], found["webhookPath"]) == ("default.pods.core.k8s.io", "/default/core/pods")


@pytest.mark.parametrize(
    ("guard", "finding"),
    [
        pytest.param(
            pods(),
            "failure policy Fail, so CREATE, UPDATE of pods fail in all namespaces but kube-system, kube-public, "
            "kube-node-lease, ops while",
            id="pods",
        ),
        pytest.param(
            pods(match=EVERYWHERE),
            "fail in all namespaces, those of Kubernetes and the operator included",
            id="everywhere",
        ),
        pytest.param(
            pods(match=Match(namespaces={"matchLabels": {"a": "b"}})),
            "fail in the namespaces that it selects but kube-system,",
            id="selected",
        ),
        pytest.param(Webhook.of(V1Node, validating=[allow]), "of nodes fail in the whole cluster while", id="nodes"),
        pytest.param(
            pods(match=Match(conditions={"not-a-node": "true", "image": "true"})),
            "so CREATE, UPDATE of pods that match its conditions (not-a-node, image) fail in all namespaces but",
            id="conditions",
        ),
        pytest.param(
            pods(match=Match(objects={"matchLabels": {"a": "b"}}, conditions={"image": "true"})),
            "of pods that match its conditions (image) and whose labels it selects fail in all namespaces but",
            id="conditions and labels",
        ),
        pytest.param(
            pods(match=Match(objects={"matchLabels": {"a": "b"}}), failure_policy="Ignore"),
            "of pods whose labels it selects pass without this webhook",
            id="ignored, of labels",
        ),
        pytest.param(
            Webhook.of(V1Namespace, validating=[allow]),
            "so CREATE, UPDATE of namespaces fail for all but kube-system, kube-public, kube-node-lease, ops while",
            id="namespaces",
        ),
        pytest.param(
            Webhook.of(V1Namespace, validating=[allow], match=Match(namespaces={"matchLabels": {"a": "b"}})),
            "of namespaces whose labels it selects fail for all but kube-system",
            id="namespaces of a label",
        ),
        pytest.param(
            Webhook.of(V1Namespace, validating=[allow], match=Match(conditions={"ours": "true"}, everywhere=True)),
            "that match its conditions (ours) fail for all, those of Kubernetes and the operator included",
            id="namespaces of a condition",
        ),
        pytest.param(
            pods(failure_policy="Ignore"),
            "failure policy Ignore, so CREATE, UPDATE of pods pass without this webhook",
            id="ignored",
        ),
        pytest.param(
            Webhook("example.com", "v1", "Shop", "shops", failure_policy="Ignore"), "of shops pass without", id="ours"
        ),
    ],
)
def test_what_happens_without_the_operator_is_said(guard: Webhook[Any], finding: str) -> None:
    (found,) = installation(webhooks=False, guards=[guard], namespace="ops").webhook_findings()
    assert finding in found


def test_a_webhook_of_a_custom_resource_needs_no_word() -> None:
    assert installation().webhook_findings() == []
    assert installation(webhooks=False).webhook_findings() == []
