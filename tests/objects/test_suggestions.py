"""What a message suggests for an unknown name is the likely word, or nothing."""

from __future__ import annotations

from types import ModuleType
from typing import Final

import pytest

from ocf.cli.component_loader import find_attribute
from ocf.errors import ConfigError
from ocf.objects.suggestions import nearest, suggestions

FIELDS: Final = ["minReplicas", "maxReplicas", "scaleTargetRef", "metrics", "behavior"]
KINDS: Final = ["Deployment", "StatefulSet", "DaemonSet", "Service", "ServiceAccount", "CronJob", "Job"]


@pytest.mark.parametrize(
    ("name", "known", "likely"),
    [
        pytest.param("maxReplica", FIELDS, "maxReplicas", id="a letter less"),
        pytest.param("max_replicas", FIELDS, "maxReplicas", id="snake case"),
        pytest.param("MAX-REPLICAS", FIELDS, "maxReplicas", id="upper case and dashes"),
        pytest.param("behaviour", FIELDS, "behavior", id="the other English"),
        pytest.param("deploy", KINDS, "Deployment", id="cut off"),
        pytest.param("deployments", KINDS, "Deployment", id="a plural"),
        pytest.param("service", KINDS, "Service", id="the same but for case, before a longer one"),
        pytest.param("cronjob", KINDS, "CronJob", id="not the shorter one in it"),
        pytest.param("jbo", KINDS, "Job", id="two letters swapped"),
        pytest.param("Ingress", KINDS, "", id="nothing that is like it"),
        pytest.param("value", ["failures", "startup"], "", id="letters of a longer name"),
        pytest.param("rate", ["at", "type"], "", id="a shorter name in it"),
        pytest.param("x", FIELDS, "", id="one letter"),
        pytest.param("s", KINDS, "", id="a first letter"),
        pytest.param("", FIELDS, "", id="nothing"),
        pytest.param("---", FIELDS, "", id="separators only"),
        pytest.param("a", [], "", id="nothing known"),
        pytest.param("Server", KINDS, "", id="the same letters in another word"),
        pytest.param("Release", ["Lease", "Role"], "", id="the end of another word"),
        pytest.param("--host", ["--port", "--nodes"], "", id="a short word with half of its letters"),
        pytest.param("--reprt", ["--no-report", "--parquet", "--report"], "--report", id="not those that are longer"),
        pytest.param("replicas", FIELDS, "", id="the end of two"),
        pytest.param("version", ["apiVersion", "kind"], "apiVersion", id="the end of one"),
        pytest.param("latency", ["latency_p95", "latency_p99"], "", id="the begin of two"),
        pytest.param("code", ["Node", "Pod"], "", id="a short word with another first letter"),
        pytest.param("averageUtilisation", ["averageValue", "averageUtilization"], "averageUtilization", id="long"),
        pytest.param("xinReplicas", FIELDS, "minReplicas", id="a long word with another first letter"),
        pytest.param("größe", ["groesse", "Größe"], "Größe", id="not only ASCII"),
    ],
)
def test_the_likely_name_is_suggested(name: str, known: list[str], likely: str) -> None:
    assert nearest(name, known) == likely


def test_names_that_differ_in_case_only_are_suggested_in_their_order() -> None:
    assert suggestions("shop", ["Shops", "SHOP", "shops"], most=2) == ["SHOP", "Shops"]


def test_what_a_module_imports_is_not_suggested() -> None:
    module = ModuleType("shop")
    exec("from ocf.runtime.operator import Operator\nimport operator\noperators = []", vars(module))  # noqa: S102

    with pytest.raises(ConfigError, match='module shop has no "Operater", did you mean "operators"'):
        find_attribute("shop:Operater", module, "Operater")
