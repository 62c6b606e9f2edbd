"""Every rule of the condition linter, kept and broken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.testing import ConditionSeverity, lint_conditions
from ocf.testing.conditions import ConditionRule

if TYPE_CHECKING:
    from ocf_server import EmbeddedCluster
    from tests.testing.conftest import Operator

NOON, LATER = "2026-01-31T12:00:00Z", "2026-01-31T12:00:01Z"
READY = {
    "type": "Ready",
    "status": "True",
    "reason": "Healthy",
    "message": "All is well.",
    "observedGeneration": 3,
    "lastTransitionTime": NOON,
}


def condition(**changes: Any) -> dict[str, Any]:
    """Return a condition; a field that is `...` is omitted."""
    return {field: value for field, value in {**READY, **changes}.items() if value is not ...}


def found(*conditions: Any, **options: Any) -> list[ConditionRule]:
    return [finding.rule for finding in lint_conditions(conditions, **options)]


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        pytest.param({}, None, id="a good one"),
        pytest.param({"type": "example.com/WebReady"}, None, id="a qualified type"),
        pytest.param({"type": ...}, ConditionRule.TYPE_INVALID, id="no type"),
        pytest.param({"type": ""}, ConditionRule.TYPE_INVALID, id="an empty type"),
        pytest.param({"type": "Web Ready"}, ConditionRule.TYPE_INVALID, id="a blank in a type"),
        pytest.param({"type": "Ready\n"}, ConditionRule.TYPE_INVALID, id="a line feed after a type"),
        pytest.param({"type": "R" * 316}, None, id="the longest type"),
        pytest.param({"type": "R" * 317}, ConditionRule.TYPE_INVALID, id="a longer type"),
        pytest.param({"type": "web-ready"}, ConditionRule.TYPE_NOT_CAMEL_CASE, id="a type in kebab-case"),
        pytest.param({"type": "example.com/webReady"}, ConditionRule.TYPE_NOT_CAMEL_CASE, id="a small qualified type"),
        pytest.param({"status": "False"}, None, id="false"),
        pytest.param({"status": "Unknown"}, None, id="unknown"),
        pytest.param({"status": "true"}, ConditionRule.STATUS_INVALID, id="a small true"),
        pytest.param({"status": True}, ConditionRule.STATUS_INVALID, id="a boolean"),
        pytest.param({"status": ...}, ConditionRule.STATUS_INVALID, id="no status"),
        pytest.param({"reason": ...}, ConditionRule.REASON_INVALID, id="no reason"),
        pytest.param({"reason": ""}, ConditionRule.REASON_INVALID, id="an empty reason"),
        pytest.param({"reason": "It works"}, ConditionRule.REASON_INVALID, id="a sentence for a reason"),
        pytest.param({"reason": "R" * 1024}, None, id="the longest reason"),
        pytest.param({"reason": "R" * 1025}, ConditionRule.REASON_INVALID, id="a longer reason"),
        pytest.param({"reason": "healthy"}, ConditionRule.REASON_NOT_CAMEL_CASE, id="a small reason"),
        pytest.param({"reason": "Pods_Ready"}, ConditionRule.REASON_NOT_CAMEL_CASE, id="an underscore in a reason"),
        pytest.param({"message": ...}, ConditionRule.MESSAGE_INVALID, id="no message"),
        pytest.param({"message": 5}, ConditionRule.MESSAGE_INVALID, id="a number for a message"),
        pytest.param({"message": "m" * 32768}, None, id="the longest message"),
        pytest.param({"message": "m" * 32769}, ConditionRule.MESSAGE_INVALID, id="a longer message"),
        pytest.param({"message": " "}, ConditionRule.MESSAGE_EMPTY, id="an empty message"),
        pytest.param({"lastTransitionTime": "2026-01-31T12:00:00.5+01:00"}, None, id="a time with everything"),
        pytest.param({"lastTransitionTime": ...}, ConditionRule.TIME_INVALID, id="no time"),
        pytest.param({"lastTransitionTime": None}, ConditionRule.TIME_INVALID, id="null for a time"),
        pytest.param(
            {"lastTransitionTime": "2026-01-31 12:00:00"}, ConditionRule.TIME_INVALID, id="a time of another form"
        ),
        pytest.param(
            {"lastTransitionTime": "2026-01-31T12:00:00"}, ConditionRule.TIME_INVALID, id="a time without a zone"
        ),
        pytest.param(
            {"lastTransitionTime": "2026-02-31T12:00:00Z"}, ConditionRule.TIME_INVALID, id="a day that does not exist"
        ),
        pytest.param({"observedGeneration": ...}, None, id="no generation"),
        pytest.param({"observedGeneration": 0}, None, id="the lowest generation"),
        pytest.param({"observedGeneration": -1}, ConditionRule.GENERATION_INVALID, id="a negative generation"),
        pytest.param({"observedGeneration": "3"}, ConditionRule.GENERATION_INVALID, id="a text for a generation"),
        pytest.param({"observedGeneration": True}, ConditionRule.GENERATION_INVALID, id="a boolean for a generation"),
        pytest.param({"severity": "Info"}, ConditionRule.FIELD_UNKNOWN, id="a field of another API"),
    ],
)
def test_fields(changes: dict[str, Any], rule: ConditionRule | None) -> None:
    assert found(condition(**changes)) == ([rule] if rule else [])


@pytest.mark.parametrize(
    ("observed", "rule"), [(2, ConditionRule.GENERATION_BEHIND), (3, None), (4, ConditionRule.GENERATION_AHEAD)]
)
def test_the_generation_against_that_of_the_object(observed: int, rule: ConditionRule | None) -> None:
    assert found(condition(observedGeneration=observed), generation=3) == ([rule] if rule else [])
    assert found(condition(observedGeneration=observed)) == []


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param({"message": "Still well."}, None, id="the message only"),
        pytest.param({"status": "False", "lastTransitionTime": LATER}, None, id="a flip and its time"),
        pytest.param({"lastTransitionTime": LATER}, ConditionRule.TIME_MOVED, id="the time only"),
        pytest.param(
            {"lastTransitionTime": LATER, "reason": "Fine"}, ConditionRule.TIME_MOVED_WITH_REASON, id="time and reason"
        ),
        pytest.param({"status": "False"}, ConditionRule.TIME_NOT_MOVED, id="a flip without its time"),
        pytest.param(
            {"lastTransitionTime": "2026-01-31T11:59:59Z"}, ConditionRule.TIME_BACKWARDS, id="the time goes back"
        ),
        pytest.param(
            {"status": "False", "lastTransitionTime": "2026-01-31T11:59:59Z"},
            ConditionRule.TIME_BACKWARDS,
            id="back with a flip",
        ),
        pytest.param({"lastTransitionTime": "2026-01-31T13:00:00+01:00"}, None, id="the same time in another zone"),
        pytest.param({"observedGeneration": 2}, ConditionRule.GENERATION_BACKWARDS, id="the generation falls"),
        pytest.param({"observedGeneration": 4}, None, id="the generation rises"),
        pytest.param({"type": "Other", "lastTransitionTime": LATER}, None, id="another type is another condition"),
    ],
)
def test_changes_of_a_condition(changes: dict[str, Any], rule: ConditionRule | None) -> None:
    assert found(condition(**changes), previous=[READY]) == ([rule] if rule else [])


def test_a_time_that_cannot_be_read_is_not_compared() -> None:
    broken = condition(lastTransitionTime="soon")
    assert found(broken, previous=[READY]) == [ConditionRule.TIME_INVALID]
    assert found(READY, previous=[broken, "nonsense"]) == []


def test_a_type_occurs_once() -> None:
    assert found(READY, condition(type="Other"), READY) == [ConditionRule.TYPE_DUPLICATE]


def test_an_item_that_is_not_a_map_is_a_finding() -> None:
    assert found("Ready", None) == [ConditionRule.NOT_A_CONDITION, ConditionRule.NOT_A_CONDITION]


def test_no_conditions_give_no_findings() -> None:
    assert lint_conditions([]) == ()


def test_a_finding_shows_severity_rule_path_and_problem() -> None:
    broken = condition(status="yes", reason="healthy")
    assert [
        str(finding) for finding in lint_conditions([READY, condition(type="Other"), {**broken, "type": "Third"}])
    ] == [
        "FAIL status-invalid [2].status: must be one of True, False, Unknown, got 'yes'",
        "WARN reason-not-camel-case [2].reason: should be in CamelCase, got 'healthy'",
    ]


def test_codes_and_severities_do_not_change() -> None:
    assert {str(rule) for rule in ConditionRule if rule.severity is ConditionSeverity.WARN} == {
        "field-unknown",
        "generation-behind",
        "message-empty",
        "reason-not-camel-case",
        "time-moved-with-reason",
        "time-not-moved",
        "type-not-camel-case",
    }
    assert {str(rule) for rule in ConditionRule if rule.severity is ConditionSeverity.FAIL} == {
        "generation-ahead",
        "generation-backwards",
        "generation-invalid",
        "message-invalid",
        "not-a-condition",
        "reason-invalid",
        "status-invalid",
        "time-backwards",
        "time-invalid",
        "time-moved",
        "type-duplicate",
        "type-invalid",
    }


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(list(READY)), inner),
    max_leaves=12,
)


@given(conditions=st.lists(ANYTHING, max_size=4), previous=st.lists(ANYTHING, max_size=4))
def test_the_linter_never_raises(conditions: list[Any], previous: list[Any]) -> None:
    """Any value of a status gives findings and never an error."""
    findings = lint_conditions(conditions, previous=previous, generation=1)
    assert all(str(finding) for finding in findings)


@pytest.mark.promise("condition-rules")
async def test_the_conditions_of_a_component_have_no_findings(operator: Operator, cluster: EmbeddedCluster) -> None:
    await operator.reconcile(cluster)
    first = (await cluster.get(operator.shop))["status"]["conditions"]
    await operator.reconcile(cluster)
    shop = await cluster.get(operator.shop)
    generation = shop["metadata"]["generation"]
    assert lint_conditions(shop["status"]["conditions"], generation=generation, previous=first) == ()
