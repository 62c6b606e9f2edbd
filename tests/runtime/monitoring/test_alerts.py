"""Rules and dashboard speak of what is exported, in words that are exported.

What the rules say of histories of the metrics is in `alerts_test.yaml`, for Prometheus' own
`promtool test rules`; run it after a change of a threshold.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any, Final

import pytest
import yaml
from jsonschema import Draft7Validator
from prometheus_client.parser import text_string_to_metric_families as parse

from ocf.cluster.cache.informer_state import InformerState
from ocf.component.external.calls import ExternalCalls
from ocf.concepts import ApplyOperation, Attempt
from ocf.concepts.recorder import Why
from ocf.errors import ConfigError
from ocf.runtime.monitoring import PrometheusRecorder, alert_rules, dashboard
from ocf.runtime.operator.state_metrics import StateMetrics
from ocf.runtime.workqueue.metrics import QueueMetrics
from ocf.testing import VirtualClock
from tests.runtime.monitoring.queries import PANELS, QUERIES, RECORDED, RULES, SCHEMA, sent

# What Prometheus knows of a target, and puts on its series.
TARGET: Final = {"job", "namespace"}
LANGUAGE: Final = {
    *("and", "or", "by"),
    *("sum", "min", "max", "count", "topk"),
    *("increase", "rate", "time", "sort_desc"),
}
WORDS: Final = {
    "operation": {operation.lower() for operation in ApplyOperation},
    "why": {str(why) for why in Why},
    "status": {"True", "False", "Unknown"},
    "result": {"success", "error", "requeue_after"},
}


@dataclass(frozen=True)
class Query:
    """What a query speaks of, as far as it can be read without knowing the language."""

    metrics: set[str]
    matched: list[tuple[str, str, str]]
    grouped: set[str]


def read(expression: str) -> Query:
    bare = re.sub(r'"[^"]*"', '""', expression)
    grouped = {label.strip() for group in re.findall(r"\bby\s*\(([^)]*)\)", bare) for label in group.split(",")}
    bare = re.sub(r"\bby\s*\([^)]*\)|\{[^}]*\}|\[[^\]]*\]", " ", bare)
    metrics = set(re.findall(r"[a-zA-Z_:][\w:]*", bare)) - LANGUAGE
    matched = [
        (metric, *matcher)
        for metric, matchers in re.findall(r"([\w:]+)\{([^}]*)\}", expression)
        for matcher in re.findall(r'(\w+)\s*(?:[=!]~|!?=)\s*"([^"]*)"', matchers)
    ]
    return Query(metrics, matched, grouped)


class _Watching:
    """A cache that follows one kind."""

    informers = (
        InformerState(
            api_version="v1",
            kind="Secret",
            namespace="",
            synced=True,
            objects=1,
            resource_version="1",
            failures=0,
            problem="",
        ),
    )


@pytest.fixture
def exported(attempt: Callable[..., Attempt]) -> dict[str, set[str]]:
    """The labels of each metric, as a scrape sees them."""
    recorder = PrometheusRecorder(controller="shop")
    recorder.attempted(attempt())
    recorder.attempted(attempt(operation=None, why=Why.FAILED))
    recorder.observed(attempt().owner, [{"type": "Ready", "lastTransitionTime": "2026-01-01T12:00:00Z"}])
    QueueMetrics(recorder.registry).reconciled("shop", "error", 1)
    calls = ExternalCalls()
    place, now, limit = ("mark", "bucket"), timedelta(0), timedelta(seconds=1)
    assert calls.refusal("eu", place, now, most=1, limit=limit, wake=None, follows=False) is None
    StateMetrics(recorder.registry, "shops", VirtualClock()).set_term([_Watching()], {}, calls)
    families = parse(recorder.render().body.decode())
    return {each.name: set(each.labels) for family in families for each in family.samples}


@pytest.mark.parametrize("expression", [pytest.param(text, id=name) for name, text in QUERIES.items()])
class TestQueries:
    def test_prometheus_reads_what_we_read(self, expression: str) -> None:
        verdict = json.loads(RECORDED.read_text(encoding="utf-8")).get(sent(expression))

        assert verdict is not None, "the expression is new: run `python -m scripts.record.dashboard`"
        assert "error" not in verdict
        assert verdict["metrics"] == sorted(read(expression).metrics)

    def test_every_metric_is_exported(self, expression: str, exported: dict[str, set[str]]) -> None:
        metrics = read(expression).metrics

        assert metrics
        assert metrics <= exported.keys()

    def test_every_label_is_exported(self, expression: str, exported: dict[str, set[str]]) -> None:
        query = read(expression)
        there = set.union(*(exported[metric] for metric in query.metrics))

        assert query.grouped <= there | TARGET
        assert {label for metric, label, _ in query.matched if label not in exported[metric]} == set()

    def test_every_value_occurs(self, expression: str, exported: dict[str, set[str]]) -> None:
        matched = [(label, value) for _, label, value in read(expression).matched if label in WORDS]

        assert exported
        assert [(label, value) for label, value in matched if value not in WORDS[label]] == []


def test_a_query_that_names_what_is_not_exported_is_found(exported: dict[str, set[str]]) -> None:
    """Otherwise the tests above would prove nothing."""
    query = read('sum by (owner, component) (increase(ocf_resource_applies{why="back off", what!="x"}[5m]))')

    assert query.metrics - exported.keys() == {"ocf_resource_applies"}
    assert query.grouped == {"owner", "component"}
    assert query.matched == [("ocf_resource_applies", "why", "back off"), ("ocf_resource_applies", "what", "x")]


class TestRules:
    def test_there_is_a_rule_for_each_way_to_go_wrong(self) -> None:
        assert [rule["alert"] for rule in RULES] == [
            "ManagedResourceNotConverging",
            "ManagedResourceApplyFailing",
            "ManagedResourceContended",
            "OperatorReconcilesFailing",
            "OperatorWatchBroken",
            "ExternalTargetNotAnswering",
            "CustomResourceNotReady",
            "CustomResourceConditionUnknown",
            "CustomResourceConditionStuck",
        ]

    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
    def test_a_text_names_only_what_the_expression_leaves(self, rule: dict[str, Any]) -> None:
        named = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))

        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert named
        assert named <= read(rule["expr"]).grouped

    def test_another_operator_has_other_names(self) -> None:
        rules = alert_rules("shops", conditions="WebReady|DataReady")

        assert "ocf_controller_condition" not in rules
        assert ".*Ready" not in rules
        assert 'shops_controller_condition{condition=~"WebReady|DataReady", status="False"}' in rules
        assert "ocf_resource_apply_total" in rules
        assert yaml.safe_load(rules)

    @pytest.mark.parametrize("conditions", ["", 'Ready"', "Ready\\d", "Ready\n"])
    def test_what_would_break_an_expression_is_refused(self, conditions: str) -> None:
        with pytest.raises(ConfigError, match="conditions must be a regular expression"):
            alert_rules(conditions=conditions)

    def test_a_namespace_that_names_no_metric_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="namespace of the metrics must match"):
            alert_rules("my-shops")


def set_in(path: tuple[str | int, ...], value: object) -> Callable[[dict[str, Any]], None]:
    """Return a function that sets a field of a dashboard."""

    def change(board: Any) -> None:
        for part in path[:-1]:
            board = board[part]
        board[path[-1]] = value

    return change


def problems(board: Mapping[str, Any]) -> Iterator[str]:
    """Yield why a dashboard does not match Grafana's schema; for alternatives, why it matches none of them."""
    found = [*Draft7Validator(json.loads(SCHEMA.read_text(encoding="utf-8"))).iter_errors(board)]
    while found:
        error = found.pop()
        found += error.context
        yield f"{error.json_path}: {error.message}"


class TestDashboard:
    @pytest.mark.parametrize("namespace", ["ocf", "shops"])
    def test_it_has_the_schema_of_grafana(self, namespace: str) -> None:
        assert [*problems(dashboard(namespace))] == []

    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            pytest.param(
                lambda board: board.pop("schemaVersion"),
                "$: 'schemaVersion' is a required property",
                id="without a version",
            ),
            pytest.param(
                set_in(("titel",), "shops"),
                "$: Additional properties are not allowed ('titel' was unexpected)",
                id="an unknown property",
            ),
            pytest.param(set_in(("refresh",), 60), "$.refresh: 60 is not of type 'string'", id="another type"),
            pytest.param(set_in(("panels", 0, "gridPos", "w"), "12"), ".gridPos.w: '12' is not of type", id="a text"),
            pytest.param(
                set_in(("panels", 1, "gridPos", "w"), True), ".gridPos.w: True is not of type", id="a boolean"
            ),
            pytest.param(
                set_in(("templating", "list", 1, "type"), "querry"), "list[1].type: 'querry' is not one of", id="a kind"
            ),
            pytest.param(
                set_in(("panels", 0, "fieldConfig", "default"), {}),
                "fieldConfig: Additional properties are not allowed ('default'",
                id="deep inside",
            ),
            pytest.param(
                set_in(("panels", 0, "fieldConfig", "defaults", "unit"), None), "None is not of type", id="a null"
            ),
        ],
    )
    def test_a_spoilt_one_has_not(self, change: Callable[[dict[str, Any]], object], problem: str) -> None:
        board = dashboard()
        change(board)

        assert problem in "\n".join(problems(board))

    def test_panels_lie_beside_each_other_and_not_on_top(self) -> None:
        places = [panel["gridPos"] for panel in PANELS]

        assert all(place["x"] + place["w"] <= 24 for place in places)
        for before, after in pairwise(places):
            assert (after["y"], after["x"]) in {
                (before["y"], before["x"] + before["w"]),
                (before["y"] + before["h"], 0),
            }

    def test_panels_can_be_told_apart(self) -> None:
        assert len({panel["id"] for panel in PANELS}) == len({panel["title"] for panel in PANELS}) == len(PANELS)

    def test_a_legend_names_only_what_the_query_leaves(self) -> None:
        for panel in PANELS:
            (target,) = panel["targets"]
            named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert named <= read(target["expr"]).grouped

    def test_a_table_shows_only_labels_that_are_exported(self, exported: dict[str, set[str]]) -> None:
        """Labels of the target are left out: they differ from one Prometheus to another."""
        for panel in (each for each in PANELS if each["type"] == "table"):
            chosen, organized = (each["options"] for each in panel["transformations"])
            (metric,) = read(panel["targets"][0]["expr"]).metrics
            shown = chosen["include"]["names"]

            assert {*shown} - {"Value"} <= exported[metric]
            assert {*shown} == organized["indexByName"].keys() == organized["renameByName"].keys()

    def test_another_operator_has_another_dashboard(self) -> None:
        shops = dashboard("shops")

        assert shops["uid"] == "ocf-shops"
        assert "ocf_controller_condition" not in str(shops)
