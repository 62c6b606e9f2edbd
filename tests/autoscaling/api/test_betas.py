"""HPAs of autoscaling/v2beta1 and v2beta2 are read as Kubernetes 1.24 reads them, the last release that served both."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from ocf.autoscaling import FieldError, admitted, default, validate
from ocf.autoscaling.api.betas import as_v2, not_served
from ocf.autoscaling.api.versions import read_hpa
from ocf.errors import ManifestError
from ocf.objects import Manifest

CORPUS: Final = Path(__file__).with_name("data") / "hpa_betas.json.xz"
# Kubernetes 1.24 lost the container of a metric of autoscaling/v2beta1, and kept a zero that the version requires; a
# behavior in the annotation got no defaults, which it gets once it is written as autoscaling/v2.
FAULTS: Final = {
    "autoscaling/v2beta1": (".containerResource.container", ".object.target.value", ".policies"),
    "autoscaling/v2beta2": (),
}
# A rule of newer releases.
NEWER: Final = "apiVersion must specify API group"
TARGET: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


class Row(NamedTuple):
    """An object, and what the API server makes of it."""

    hpa: Manifest
    error: str
    spec: Manifest | None
    problems: list[tuple[str, str]]

    @property
    def sent(self) -> str:
        return json.dumps([self.hpa["metadata"]["annotations"], self.hpa["spec"]])


@cache
def rows() -> tuple[Row, ...]:
    table = json.loads(lzma.decompress(CORPUS.read_bytes()).decode(errors="surrogatepass"))
    kind = "HorizontalPodAutoscaler"
    return tuple(
        Row(
            {"apiVersion": version, "kind": kind, "metadata": {"name": "web", "annotations": notes}, "spec": spec},
            error,
            v2,
            [(path, message) for path, message in problems],
        )
        for version, notes, spec, error, v2, problems in table["rows"]
    )


def of_object(errors: tuple[FieldError, ...]) -> list[FieldError]:
    """Return the errors without those of the version, and of rules that 1.24 did not have."""
    assert errors[0].path == "apiVersion"
    return [error for error in errors[1:] if error.detail != NEWER]


def spec_of(hpa: Manifest) -> Manifest:
    """Return the spec as it is stored."""
    return dict(admitted({"metadata": {"name": "web"}, "spec": default(hpa)["spec"]})["spec"])


def test_the_table_has_rows_of_each_kind() -> None:
    kinds = Counter((row.hpa["apiVersion"], bool(row.error), bool(row.problems)) for row in rows())

    assert len(kinds) == 6
    assert min(kinds.values()) > 100


@pytest.mark.promise("hpa-validation", runs="more than 2 000 odd objects of autoscaling/v2beta1 and v2beta2")
def test_what_cannot_be_decoded_is_rejected() -> None:
    wrong: list[tuple[str, str, str]] = []
    for row in rows():
        try:
            read_hpa(row.hpa)
        except ManifestError as error:
            if not row.error:
                wrong.append((row.sent, row.error, str(error)))
        else:
            if row.error:
                wrong.append((row.sent, row.error, ""))

    assert wrong == []


def test_an_admitted_object_is_converted_alike() -> None:
    wrong = []
    for row in rows():
        if row.spec is not None and not row.problems:
            ours, theirs = spec_of(read_hpa(row.hpa)), spec_of({"spec": row.spec})
            errors = of_object(validate(row.hpa, any_version=True))
            if ours != theirs or errors:
                wrong.append((row.sent, theirs, ours, errors))

    assert wrong == []


def test_a_rejected_object_is_rejected_after_the_conversion() -> None:
    wrong = []
    for row in rows():
        repeated = [path for path, _ in row.problems if not path.endswith(FAULTS[row.hpa["apiVersion"]])]
        if row.problems and bool(of_object(validate(row.hpa, any_version=True))) < bool(repeated):
            wrong.append((row.sent, row.problems))

    assert wrong == []


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        (
            "autoscaling/v2beta1",
            (
                "not served by Kubernetes 1.25 and newer: write autoscaling/v2, whose metrics have other fields, "
                "or let `ocf validate --fix` do it"
            ),
        ),
        (
            "autoscaling/v2beta2",
            "not served by Kubernetes 1.26 and newer: write autoscaling/v2, or let `ocf validate --fix` do it",
        ),
        ("autoscaling/v2", ""),
        ("autoscaling/v1", ""),
        (None, ""),
    ],
)
def test_the_version_is_named_with_its_last_release(version: object, problem: str) -> None:
    """As in https://github.com/doitintl/kube-no-trouble/issues/490 and https://github.com/FairwindsOps/pluto/issues/280.

    These name another release, and autoscaling/v1 as what to write instead.
    """
    assert not_served(version) == problem


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "a"}},
            {"name": "cpu", "container": "a", "target": {"type": "AverageValue"}},
            id="the container is kept",
        ),
        pytest.param(
            {"type": "Object", "object": {"target": TARGET, "metricName": "m", "targetValue": "0", "averageValue": 5}},
            {
                "metric": {"name": "m"},
                "describedObject": TARGET,
                "target": {"type": "AverageValue", "averageValue": "5"},
            },
            id="the zero that the version requires is dropped",
        ),
    ],
)
def test_faults_of_the_conversion_are_not_repeated(spec: Manifest, expected: Manifest) -> None:
    found = read_hpa({"apiVersion": "autoscaling/v2beta1", "spec": {"metrics": [spec]}})["spec"]["metrics"][0]

    assert [part for part in found.values() if isinstance(part, dict)] == [expected]


def test_the_status_is_converted() -> None:
    current = {"type": "Pods", "pods": {"metricName": "rps", "currentAverageValue": "5"}}
    found: Any = read_hpa({"apiVersion": "autoscaling/v2beta1", "status": {"currentMetrics": [current]}})

    assert found["status"]["currentMetrics"][0]["pods"] == {"metric": {"name": "rps"}, "current": {"averageValue": "5"}}


@pytest.mark.parametrize(
    ("version", "part", "problem"),
    [
        # https://github.com/bitnami/charts/issues/33698, https://github.com/directus/directus/issues/25297
        pytest.param(
            "v2",
            {"resource": {"name": "cpu", "targetAverageUtilization": 6}},
            "resource.targetAverageUtilization: unknown field, write target: {type: Utilization, averageUtilization: 6",
            id="utilization in v2",
        ),
        pytest.param(
            "v2beta2",
            {"resource": {"name": "memory", "targetAverageValue": "1Gi"}},
            "resource.targetAverageValue: unknown field, write target: {type: AverageValue, averageValue: 1Gi}",
            id="value in v2beta2",
        ),
        # https://github.com/kubernetes/website/issues/16759
        pytest.param(
            "v2",
            {"pods": {"metric": {"name": "packets-per-second"}, "targetAverageValue": "1k"}},
            "pods.targetAverageValue: unknown field, write target: {type: AverageValue, averageValue: 1k}",
            id="value of pods in v2",
        ),
        pytest.param(
            "v2",
            {"external": {"metricName": "q", "metricSelector": {"matchLabels": {}}, "targetValue": 30}},
            "external.metricSelector: unknown field, write it in metric, as metric.selector",
            id="selector in v2",
        ),
        pytest.param(
            "v2",
            {"object": {"target": TARGET, "metricName": "m", "targetValue": 3}},
            "object.target.name: unknown field, write it in describedObject",
            id="object in v2",
        ),
        # https://github.com/kubernetes/kubernetes/issues/73738
        pytest.param(
            "v2beta1",
            {"resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
            "resource.target: unknown field, a field of autoscaling/v2: write apiVersion: autoscaling/v2",
            id="target in v2beta1",
        ),
    ],
)
def test_a_field_of_another_version_has_the_form_of_v2(version: str, part: Manifest, problem: str) -> None:
    with pytest.raises(ManifestError) as caught:
        read_hpa({"apiVersion": f"autoscaling/{version}", "spec": {"metrics": [part]}})

    assert f"spec.metrics[0].{problem}" in str(caught.value)


# https://github.com/kellnr/helm/pull/28, https://github.com/imgproxy/imgproxy-helm/issues/52
@pytest.mark.parametrize(
    ("version", "field", "problem"),
    [
        ("v1", "metrics", "a field of autoscaling/v2: write apiVersion: autoscaling/v2"),
        ("v1", "behavior", "a field of autoscaling/v2: write apiVersion: autoscaling/v2"),
        ("v2beta1", "behavior", "a field of autoscaling/v2: write apiVersion: autoscaling/v2"),
        ("v2", "targetCPUUtilizationPercentage", "write metrics: [{type: Resource, resource: {name: cpu, target: "),
    ],
)
def test_a_field_of_the_spec_of_another_version_is_named(version: str, field: str, problem: str) -> None:
    with pytest.raises(ManifestError) as caught:
        read_hpa({"apiVersion": f"autoscaling/{version}", "spec": {field: []}})

    assert f"spec.{field}: unknown field, {problem}" in str(caught.value)


def test_what_is_written_as_v2_means_the_same() -> None:
    """For each valid object: what its user would write, and what the API server would convert it to."""
    wrong, count = [], 0
    for row in rows():
        if not row.error and not of_object(validate(row.hpa, any_version=True)):
            written = as_v2(row.hpa)
            count += 1
            if spec_of(read_hpa(written)) != spec_of(read_hpa(row.hpa)) or as_v2(written) is not written:
                wrong.append((row.sent, written))

    assert wrong == []
    assert count > 500


def test_only_what_has_to_be_changed_is_changed_in_v2() -> None:
    quantity: list[int] = []
    old = {"type": "Pods", "pods": {"metricName": "rps", "targetAverageValue": 10}}
    mixed = {"type": "Pods", "pods": {"metric": {"name": "rps"}, "targetAverageValue": "1k"}}
    own = {"type": "Resource", "resource": {"name": "cpu", "target": quantity, "x": None}}
    found = as_v2({"apiVersion": "autoscaling/v2", "kind": "X", "spec": {"a": None, "metrics": [old, mixed, own, 5]}})

    assert found["spec"]["metrics"] == [
        {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": 10}}},
        {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "1k"}}},
        own,
        5,
    ]
    assert found["spec"]["metrics"][2]["resource"]["target"] is quantity
    assert (found["kind"], found["spec"]["a"]) == ("X", None)
