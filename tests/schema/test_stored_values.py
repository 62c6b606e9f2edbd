"""Comparison of sent values with stored ones: defaults, empty values and quantities."""

from __future__ import annotations

from typing import Any, Final

import pytest

from ocf.schema.builtin import ANYTHING, MISSING, builtin_resource, struct
from ocf.schema.defaults import DEFAULTS
from ocf.schema.stored_values import is_stored_as, type_at

DISK: Final = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}
STORED_DISK: Final = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "creationTimestamp": None},
    "spec": {**DISK, "resources": {"requests": {"storage": "1Gi"}}, "volumeMode": "Filesystem"},
    "status": {"phase": "Pending"},
}
CLAIM: Final = {"metadata": {"name": "data"}, "spec": DISK}


@pytest.mark.parametrize(
    ("name", "sent", "stored", "expected"),
    [
        pytest.param("core.v1.PersistentVolumeClaim", CLAIM, STORED_DISK, True, id="a claim with all its defaults"),
        pytest.param(
            "core.v1.PersistentVolumeClaim",
            CLAIM,
            {**STORED_DISK, "spec": {**STORED_DISK["spec"], "volumeMode": "Block"}},  # type: ignore[dict-item]  # a dict
            False,
            id="a claim that had another mode before",
        ),
        pytest.param(
            "core.v1.PersistentVolumeClaim",
            CLAIM,
            {**STORED_DISK, "status": {"phase": "Bound"}},
            False,
            id="a claim with another status",
        ),
        pytest.param("networking.v1.NetworkPolicyPort", {"port": 80}, {"port": 80, "protocol": "TCP"}, True, id="port"),
        pytest.param(
            "networking.v1.NetworkPolicyPort",
            {"port": 80},
            {"port": 80, "protocol": "UDP"},
            False,
            id="a port that was UDP before",
        ),
        pytest.param(
            "networking.v1.NetworkPolicyPort",
            {"port": 80, "protocol": "TCP"},
            {"port": 80},
            False,
            id="a default that is sent and not stored",
        ),
        pytest.param(
            "core.v1.ResourceFieldSelector",
            {"resource": "limits.cpu"},
            {"resource": "limits.cpu", "divisor": "0"},
            True,
            id="a quantity of zero",
        ),
        pytest.param(
            "core.v1.ResourceFieldSelector",
            {"resource": "limits.cpu", "divisor": "1000m", "containerName": ""},
            {"resource": "limits.cpu", "divisor": "1"},
            True,
            id="a quantity in canonical form, and an empty value that is dropped",
        ),
        pytest.param("core.v1.Toleration", {"key": None}, {}, True, id="null is not stored"),
        pytest.param("core.v1.Toleration", {"key": "a"}, {}, False, id="a value that is not stored"),
        pytest.param("core.v1.Toleration", {"nonsense": ""}, {}, False, id="an unknown field"),
        pytest.param("core.v1.Toleration", {}, {"key": "a"}, False, id="a value that is not sent"),
        pytest.param("meta.v1.LabelSelector", {"matchLabels": {"a": ""}}, {"matchLabels": {}}, False, id="map"),
        pytest.param("meta.v1.LabelSelector", {"matchLabels": {"a": "b"}}, {"matchLabels": {"a": "b"}}, True, id="map"),
    ],
)
def test_a_value_that_the_server_would_store_in_the_same_way(
    name: str, sent: Any, stored: Any, *, expected: bool
) -> None:
    assert is_stored_as(sent, stored, struct(name)) is expected


@pytest.mark.parametrize(
    ("sent", "stored", "expected"),
    [
        pytest.param([1], [1.0], True, id="numbers"),
        pytest.param(True, 1, False, id="a number is not a boolean"),
        pytest.param({"cpu": "1000m"}, {"cpu": "1"}, False, id="a quantity of a custom resource is a text"),
        pytest.param({}, {"a": None}, False, id="nothing is a default"),
    ],
)
def test_values_of_custom_kinds_are_compared_as_json(sent: Any, stored: Any, *, expected: bool) -> None:
    assert is_stored_as(sent, stored, ANYTHING) is expected


def test_types_are_found_by_path() -> None:
    resource = builtin_resource("apps", "v1", "Deployment")
    assert resource is not None
    container = ("spec", "template", "spec", "containers", 0)
    assert type_at(resource.type, (*container, "resources", "limits", "cpu")).name == "QUANTITY"  # type: ignore[union-attr]  # a Scalar
    assert type_at(resource.type, (*container, "nowhere", "deeper")) is ANYTHING
    assert type_at(resource.type, ("metadata", "labels", "cpu")).name == "TEXT"  # type: ignore[union-attr]  # a Scalar


@pytest.mark.parametrize("name", DEFAULTS)
def test_every_default_is_of_a_known_field_and_its_type(name: str) -> None:
    fields = struct(name).fields
    for field, default in DEFAULTS[name].items():
        assert fields[field].default is default is not MISSING
        assert is_stored_as(default, default, fields[field].type)
