"""A baseline with `generateName`, which would be another object in each reconcile.

https://github.com/kubernetes-sigs/kubebuilder/issues/1381, https://github.com/cryostatio/cryostat-operator/issues/163:
objects were made twice. https://github.com/kubernetes/kubernetes/pull/44527: an apply needs a name.
"""

from typing import Any

import pytest
from kubernetes.client import V1ConfigMap, V1ObjectMeta

from ocf.concepts.resource import ObjectDefaults
from ocf.errors import BuildError
from ocf.objects import Manifest, ObjectKey, dump_document
from ocf.primitives import clusterrole, configmap, job, unstructured

OWNER = ObjectKey("example.com/v1", "Shop", "corner", "town")
GENERATED: Manifest = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"generateName": "web-", "namespace": "town"},
}
WHY = (
    'object name cannot be empty: metadata.generateName "web-" cannot replace it, because the API server generates '
    "another name for each create, so each reconcile would create another object; set metadata.name"
)


def problems_of(builder: Any) -> tuple[str, ...]:
    with pytest.raises(BuildError) as refused:
        builder.build()
    return refused.value.problems


@pytest.mark.parametrize(
    "builder",
    [
        pytest.param(configmap.Builder(GENERATED), id="a manifest"),
        pytest.param(configmap.Builder(dump_document(GENERATED)), id="a text"),
        pytest.param(
            configmap.Builder(
                V1ConfigMap(
                    api_version="v1", kind="ConfigMap", metadata=V1ObjectMeta(generate_name="web-", namespace="town")
                )
            ),
            id="a model",
        ),
        pytest.param(unstructured.StaticBuilder({**GENERATED, "kind": "Gadget"}), id="a kind without a declaration"),
        pytest.param(
            clusterrole.Builder(
                {
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": "ClusterRole",
                    "metadata": {"generateName": "web-"},
                    "rules": [],
                }
            ),
            id="a cluster-scoped kind",
        ),
    ],
)
def test_a_generated_name_is_an_error_that_has_the_reason_and_the_remedy(builder: Any) -> None:
    assert problems_of(builder) == (WHY,)


@pytest.mark.parametrize(
    "source", [pytest.param(GENERATED, id="a manifest"), pytest.param(dump_document(GENERATED), id="a text")]
)
def test_the_name_of_an_owner_is_not_set_beside_it(source: Any) -> None:
    """The author expects a name of its own for each object, and would get one object."""
    builder = configmap.Builder(source).with_defaults(ObjectDefaults(namespace="town", owner=OWNER))
    assert problems_of(builder) == (f"{WHY}, or omit both for that of the owner Shop corner",)


def test_it_is_reported_together_with_other_problems() -> None:
    wrong = {**GENERATED, "metadata": {"generateName": "web-"}, "dta": {}}
    unknown, name, namespace = problems_of(configmap.Builder(wrong))
    assert 'dta: unknown field, did you mean "data"?' in unknown
    assert (name, namespace) == (WHY, "object namespace cannot be empty")


def test_beside_a_name_it_has_no_effect() -> None:
    """As for the API server: https://github.com/kubernetes/kubernetes/pull/44527."""
    named = {**GENERATED, "metadata": {"generateName": "web-", "name": "web", "namespace": "town"}}
    assert configmap.Builder(named).build().key == ObjectKey("v1", "ConfigMap", "web", "town")


def test_a_pod_template_may_have_one() -> None:
    template = {"metadata": {"generateName": "x-"}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    base = {"metadata": {"name": "once", "namespace": "town"}, "spec": {"template": template}}
    assert job.Builder({"apiVersion": "batch/v1", "kind": "Job", **base}).build().key.name == "once"
