"""Structs print as the API server prints its internal types."""

from typing import Any

import pytest

from ocf_server.validation.go_structs import go_diff, go_struct


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        pytest.param("PodOS", None, None, id="nil"),
        pytest.param("PodOS", {}, {"Name": ""}, id="zero value"),
        pytest.param("GRPCAction", {"port": 1}, {"Port": 1, "Service": None}, id="nil pointer"),
        pytest.param(
            "RollingUpdateDeployment",
            {"maxSurge": "5%"},
            {"MaxUnavailable": 0, "MaxSurge": "5%"},
            id="number or text",
        ),
        pytest.param(
            "ResourceRequirements",
            {"limits": {"memory": "1024Mi", "cpu": "1000m"}},
            {"Limits": {"cpu": "1", "memory": "1Gi"}, "Requests": None, "Claims": None},
            id="quantities, sorted by name",
        ),
        pytest.param(
            "SecretKeySelector",
            {"key": "k", "name": "s"},
            {"Name": "s", "Key": "k", "Optional": None},
            id="embedded struct",
        ),
        pytest.param(
            "PodAffinityTerm",
            {"labelSelector": {"matchLabels": {"b": "1", "a": "2"}}, "topologyKey": "zone"},
            {
                "LabelSelector": {"matchLabels": {"a": "2", "b": "1"}},
                "Namespaces": None,
                "TopologyKey": "zone",
                "NamespaceSelector": None,
                "MatchLabelKeys": None,
                "MismatchLabelKeys": None,
            },
            id="label selector",
        ),
    ],
)
def test_a_struct_shows_all_its_go_fields_in_order(name: str, value: dict[str, Any] | None, shown: Any) -> None:
    found = go_struct(name, value)

    assert found == shown
    assert str(found) == str(shown)


def test_fields_of_the_host_are_those_of_the_security_context() -> None:
    context = go_struct("PodSpec", {"hostNetwork": True, "hostUsers": False})["SecurityContext"]

    assert (context["HostNetwork"], context["HostPID"], context["HostUsers"]) == (True, False, False)


def test_a_template_starts_with_its_metadata() -> None:
    shown = go_struct("PodTemplateSpec", {"metadata": {"labels": {"b": "1", "a": "2"}}, "spec": {}})

    assert list(shown) == ["labels", "Spec"]
    assert list(shown["labels"]) == ["a", "b"]


def test_a_difference_has_three_lines_around_it_and_escapes_html() -> None:
    old, new = {"name": "X", "value": "1"}, {"name": "X", "value": "<2>"}

    assert go_diff("EnvVar", old, new) == (
        '@@ -1,5 +1,5 @@\n {\n  "Name": "X",\n- "Value": "1",\n+ "Value": "\\u003c2\\u003e",\n  "ValueFrom": null\n }\n'
    )
