"""Which objects are meant to be HPAs, and which are of other kinds."""

from __future__ import annotations

import difflib
from typing import Any, Final

import pytest

from ocf.autoscaling.api.kinds import HPA_KIND, kind_problem
from ocf.errors import FieldProblem

SPEC: Final = {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 3}
V2: Final = "autoscaling/v2"


def detail(found: FieldProblem | None) -> str:
    assert found is not None
    return f"{found.path}: {found.detail}"


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        pytest.param({"apiVersion": V2, "kind": "HorizontalPodAutoScaler"}, "group autoscaling: write", id="case"),
        pytest.param({"apiVersion": V2, "kind": "HorizontalPodAutoscaler "}, "group autoscaling: write", id="a blank"),
        pytest.param({"apiVersion": V2, "kind": "hpa"}, "group autoscaling: write", id="the short name"),
        pytest.param({"apiVersion": V2, "kind": "horizontalpodautoscalers"}, "write", id="the plural"),
        pytest.param({"apiVersion": V2, "kind": "HorizontalPodAutoscalar"}, "write", id="a typo"),
        pytest.param({"apiVersion": V2, "kind": "Autoscaler", "spec": SPEC}, "write", id="a kind with the shape"),
        pytest.param({"apiVersion": "autoscaling/v1", "kind": "VerticalPodAutoscaler"}, "it has", id="not near"),
        pytest.param({"apiVersion": V2, "kind": 5}, "kind: must be a text, not 5", id="a number"),
        pytest.param({"apiVersion": V2}, "kind: is missing: write", id="no kind"),
        pytest.param({"apiVersion": V2, "kind": "", "spec": {}}, "kind: is missing", id="an empty kind"),
        pytest.param({"apiVersion": V2, "Kind": HPA_KIND}, "Kind: unknown field: write kind: Hor", id="a capital"),
        pytest.param({"apiVersion": "apps/v1", "kind": "HorizontalPodAutoScaler"}, "write", id="another group"),
        pytest.param({"kind": "HorizontalPodAutoScaler"}, "of Kubernetes: write", id="no version"),
        pytest.param(
            {"apiVersion": "apps/v1", "kind": "Deployment", "spec": SPEC}, "has no scaleTargetRef", id="shape"
        ),
        pytest.param({"spec": SPEC}, "kind: is missing", id="nothing but the shape"),
        pytest.param({"items": [{"apiVersion": V2, "kind": HPA_KIND}]}, "with apiVersion: v1 and", id="items"),
        pytest.param({"kind": "list", "items": [{"spec": SPEC}]}, '"list" is not a kind: write List', id="list"),
        pytest.param({"items": [{"items": [{"kind": HPA_KIND}]}]}, "kind: is missing", id="items in items"),
    ],
)
def test_a_meant_autoscaler_has_a_problem(manifest: dict[str, Any], problem: str) -> None:
    assert problem in detail(kind_problem(manifest))


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param({"apiVersion": V2, "kind": HPA_KIND}, id="an HPA"),
        pytest.param({"kind": HPA_KIND}, id="an HPA without a version"),
        pytest.param({"apiVersion": "autoscaling/v1", "kind": "Scale"}, id="Scale"),
        pytest.param({"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler"}, id="VPA"),
        pytest.param({"apiVersion": "autoscaling.example.com/v1", "kind": "HPA", "spec": SPEC}, id="a custom HPA"),
        pytest.param({"apiVersion": "datadoghq.com/v1", "kind": "WatermarkPodAutoscaler", "spec": SPEC}, id="custom"),
        pytest.param({"apiVersion": "keda.sh/v1alpha1", "spec": SPEC}, id="a custom resource without a kind"),
        pytest.param({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {}}, id="Deployment"),
        pytest.param({"kind": "hpa", "value": 3}, id="settings with a short name"),
        pytest.param({"items": [{"kind": "Service"}, 5]}, id="other items"),
        pytest.param({"autoscaling": {"maxReplicas": 3}}, id="values of a chart"),
        pytest.param({"spec": {"maxReplicas": 3}}, id="a patch"),
        pytest.param({}, id="nothing"),
    ],
)
def test_other_objects_have_none(manifest: dict[str, Any]) -> None:
    assert kind_problem(manifest) is None


@pytest.mark.parametrize("extra", range(1, 12))
def test_a_kind_is_compared_only_if_it_can_be_near(extra: int) -> None:
    """The bound on the length leaves out no kind that is near."""
    for kind in (f"{HPA_KIND}{'x' * extra}", HPA_KIND[:-extra]):
        ratio = difflib.SequenceMatcher(None, kind.lower(), HPA_KIND.lower()).ratio()
        assert (kind_problem({"apiVersion": "apps/v1", "kind": kind}) is not None) == (ratio > 0.9)
