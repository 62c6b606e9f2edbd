"""Admission policies of an operator in the manifests of each format."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest
from kubernetes.client import V1Pod

from ocf.errors import BuildError
from ocf.manifests import Format, Installation, render
from ocf.objects import Manifest, load_document
from ocf.objects.documents import load_documents
from ocf.runtime.admission import ApplyConfiguration, Policy, Validation
from tests.manifests.support import installation

BRACES: Final = '{"a": {"b": 1}}.a.b == 1 && "{{ .Values }}" != "@image@"'
VALIDATING: Final = Policy.of(V1Pod, "shops-pods", validations=[Validation(BRACES)])
MUTATING: Final = Policy.of(V1Pod, "shops-labels", mutations=[ApplyConfiguration("Object{}")])


def installed(*policies: Policy, **options: Any) -> Installation:
    given = installation(**options)
    return replace(given, operator=replace(given.operator, policies=policies))


def left_out(policy: Manifest) -> list[str]:
    (expression,) = policy["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"]
    return list(expression["values"])


def test_a_kustomization_has_policies_and_bindings_that_leave_out_the_namespace_of_the_operator() -> None:
    files = render(installed(VALIDATING, MUTATING, namespace="ops"), Format.KUSTOMIZE).generated
    found = list(load_documents(files["base/policies.yaml"]))

    assert found == [*VALIDATING.manifests(namespace="ops"), *MUTATING.manifests(namespace="ops")]
    assert left_out(found[0]) == ["kube-system", "kube-public", "kube-node-lease", "ops"]
    assert "policies.yaml" in load_document(files["base/kustomization.yaml"])["resources"]


def test_a_chart_leaves_out_the_namespace_of_the_release() -> None:
    files = render(installed(VALIDATING, namespace="ops"), Format.HELM).generated

    assert "- {{ .Release.Namespace }}\n" in files["templates/policies.yaml"]
    assert "- ops" not in files["templates/policies.yaml"]
    assert load_document(files["Chart.yaml"])["kubeVersion"] == ">=1.30.0-0"


def test_a_chart_with_mutations_needs_a_release_that_has_them() -> None:
    files = render(installed(MUTATING), Format.HELM).generated

    assert load_document(files["Chart.yaml"])["kubeVersion"] == ">=1.34.0-0"


def test_a_bundle_has_no_kind_that_olm_does_not_install() -> None:
    """OLM would refuse the bundle: https://github.com/operator-framework/operator-sdk/issues/7038."""
    files = render(installed(VALIDATING), Format.OLM).generated

    assert list(load_documents(files["policies.yaml"])) == VALIDATING.manifests(namespace="shops")
    assert not any("AdmissionPolicy" in text for path, text in files.items() if path != "policies.yaml")
    assert "COPY policies" not in files["bundle.Dockerfile"]


@pytest.mark.parametrize("layout", Format)
def test_without_policies_there_is_no_file_of_them(layout: Format) -> None:
    assert not [path for path in render(installed(), layout).generated if path.endswith("policies.yaml")]


def test_the_operator_needs_no_privilege_for_its_policies() -> None:
    assert installed(VALIDATING, MUTATING).policy_rules() == installed().policy_rules()


def test_two_policies_of_a_process_have_different_names() -> None:
    with pytest.raises(BuildError, match="two have the name shops-pods"):
        installed(VALIDATING, replace(MUTATING, name="shops-pods"))
    one = installed(VALIDATING)
    other = replace(one.operator, name="malls", policies=[VALIDATING], failure_condition=None)
    with pytest.raises(BuildError, match="two have the name shops-pods"):
        replace(one, others=[(other, [])])
