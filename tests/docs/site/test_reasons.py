"""The pages of events, conditions and errors have what the code declares, and nothing else."""

import re
from typing import Final, get_args

import pytest

from ocf.autoscaling.algorithm import Rule
from ocf.cli.exit_status import MEANINGS
from ocf.component import Reason
from ocf.component.owner_deletion import CleanupReason, condition_type
from ocf.component.pause import pause_condition
from ocf.concepts import ApplyOperation
from ocf.controllers.nodegroup import group_status
from ocf.controllers.nodegroup.reporter import Reason as GroupEvent
from ocf.runtime.events.recorders import FOLDED_REASONS
from ocf.runtime.operator import Operator, OwnerType
from ocf.runtime.operator.unwatched_objects import UNWATCHED
from scripts.site import reasons
from tests.docs.site import declared

RULES: Final = {str(rule) for rule in Rule if str(rule).isidentifier()}
"""Rules whose name is the reason of a condition; the others decide a count without one."""

COMPONENT, HPA, NODE_GROUP = reasons.table_of("conditions").values()


def in_events(*packages: str) -> set[str]:
    return set().union(*(declared.reasons(each, declared.EVENTS[each]) for each in packages))


def in_conditions(*packages: str) -> set[str]:
    return set().union(*(declared.reasons(each, declared.CONDITIONS[each]) for each in packages))


def test_the_events_of_an_operator_are_those_of_the_code() -> None:
    written = {f"{each}KIND" for each in (ApplyOperation.CREATED, ApplyOperation.UPDATED)}

    in_code = written | FOLDED_REASONS | in_events("component", "runtime")
    assert set(reasons.table_of("events")["operator"]) == in_code


def test_the_events_of_the_hpa_controller_are_those_of_the_code() -> None:
    assert set(reasons.table_of("events")["hpa"]) == in_events("autoscaling/algorithm", "controllers/hpa")


def test_the_events_of_the_node_group_controller_are_those_of_the_code() -> None:
    assert set(reasons.table_of("events")["nodegroup"]) == set(get_args(GroupEvent))
    assert in_events("controllers/nodegroup") == set(get_args(GroupEvent))


@pytest.mark.parametrize("process", ["operator", "hpa", "nodegroup"])
def test_every_event_has_a_type_and_what_to_do(process: str) -> None:
    for kind, meaning, action in reasons.table_of("events")[process].values():
        assert kind in {"Normal", "Warning"}
        assert meaning.endswith(".")
        assert action.endswith((".", ")"))


def test_the_conditions_of_an_operator_are_those_of_the_code() -> None:
    component, failure, pause, cleanup = COMPONENT.values()

    assert set(component["reasons"]) == set(map(str, Reason))
    assert set(failure["reasons"]) == {str(Reason.ERROR), UNWATCHED}
    assert set(pause["reasons"]) == declared.reasons("component", {"own_condition": "reason"})
    assert set(cleanup["reasons"]) == set(map(str, CleanupReason))
    named = [re.findall(r"`([^`]+)`", title)[0] for title in COMPONENT]
    failure_type = Operator(name="shops", owner=OwnerType("v1", "Pod"), components=lambda _: ()).failure_type
    own = pause_condition("shops"), condition_type("shops")
    types = [one.replace("shops", "<operator>") for one in (failure_type, *own)]
    assert named == ["condition_type", *types]


def test_the_conditions_of_the_hpa_controller_are_those_of_the_code() -> None:
    listed = {reason for each in HPA.values() for reason in each["reasons"]}

    assert listed == in_conditions("autoscaling/algorithm", "controllers/hpa") | RULES


def test_the_conditions_of_the_node_group_controller_are_those_of_the_code() -> None:
    types = {title.strip("`") for title in NODE_GROUP}
    listed = {reason for each in NODE_GROUP.values() for reason in each["reasons"]}
    others = {"True", "False", "Failed", "GroupProgress"}  # statuses, a phase of a node, and a class

    assert listed | types | others == declared.literals(group_status) | in_conditions("controllers/nodegroup")


def test_every_reason_of_a_condition_has_a_status_and_what_to_do() -> None:
    for conditions in reasons.table_of("conditions").values():
        for each in conditions.values():
            for status, meaning, action in each["reasons"].values():
                assert status in {"True", "False", "Unknown"}
                assert meaning.endswith(".")
                assert action.endswith((".", ")"))


def test_every_public_error_has_what_to_do() -> None:
    assert set(reasons.table_of("errors")) == {each.__name__ for each in reasons.public_errors()}


def test_the_page_of_errors_has_each_class_and_each_exit_status() -> None:
    page = reasons.errors_page()

    for each in reasons.public_errors():
        assert f"| `{each.__name__}` | `{each.__bases__[0].__name__}` |" in page
    for status, meaning in MEANINGS.items():
        assert f"| {status} | {meaning} |" in page


@pytest.mark.parametrize("table", ["events", "conditions"])
def test_every_link_leads_to_a_section(table: str) -> None:
    text = (reasons.TABLES / f"{table}.yaml").read_text(encoding="utf-8")
    linked = re.findall(r"\]\(\.\./([\w-]+/[\w-]+\.md)#([^)]+)\)", text)

    assert len(linked) > 2
    for page, section in linked:
        headings = re.findall(r"^#+ (.+)$", (reasons.TABLES.parent / page).read_text(encoding="utf-8"), re.MULTILINE)
        assert section in [re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings], page


def test_a_reason_in_a_variable_is_found() -> None:
    assert {"AmbiguousSelector", "InvalidSelector", "FailedGetPodsMetric"} <= in_events("autoscaling/algorithm")
