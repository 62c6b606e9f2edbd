"""What `ocf nodegroups try` prints: steps as they happen, what is left at the end, and the same as JSON."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import Result

from ocf.cli.nodegroups.trial_report import StepTable
from ocf.cli.nodegroups.trial_steps import Observer, Step
from ocf.controllers.nodegroup.model import NodeGroupSpec, ScaleDownPolicy, ScaleUpPolicy
from ocf.nodegroups import Catalog
from ocf.testing import VirtualClock
from tests.cli.nodegroups.trials import ask, found, group, job, pod, texts, workload

PAGE: Final = Path(__file__).parents[3] / "docs" / "nodes" / "nodegroup-controller.md"

pytestmark = pytest.mark.usefixtures("trial_folder")


def rows(done: Result) -> list[tuple[str, str]]:
    """Return object and text of the rows of the table."""
    table = done.stdout.partition("after ")[0].splitlines()[1:]
    cells = (re.split(r" {2,}", row, maxsplit=2) for row in table)
    return [(name, text) for _, name, text in cells]


def test_a_row_is_printed_when_its_second_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    """A long trial shows how far it is."""
    table = StepTable()
    for second in (0, 0, 1):
        step = Step(at=timedelta(seconds=second), kind="pod", object="shop/a", what="waits", text=f"in second {second}")
        table.add(step, {})
    assert "in second 0" in (shown := capsys.readouterr().out)
    assert "in second 1" not in shown
    table.flush({})
    assert "in second 1" in capsys.readouterr().out


def test_equal_steps_of_one_workload_are_one_row() -> None:
    other = workload("Deployment", "2", name="api", replicas=2)
    done = ask([group(maxNodes=9), workload("Deployment", "2", replicas=4), other, pod("web-0", "2")], "--for=2m")
    waiting = [name for name, text in rows(done) if text == "waits for a new node"]
    assert sorted(waiting) == ["2 pods of shop/api", "4 pods of shop/web", "pod shop/web-0"]


def test_equal_reasons_of_one_workload_are_one_line() -> None:
    other = workload("Deployment", "10", name="api", replicas=1)
    done = ask([group(), workload("Deployment", "10", replicas=3), other], "--for=1m")
    why = "never fits: 10 CPU requested, the largest type has 8: Insufficient cpu on small; Insufficient cpu on large"
    last = [line for line in done.stdout.splitlines() if "not run" in line]
    assert last[1:] == [f"3 pods of shop/web do not run: {why}"]
    assert last[0].startswith("pod shop/api-")
    assert last[0].endswith(f" does not run: {why}")


def test_a_long_decision_is_not_cut() -> None:
    _, answer = found([group(maxNodes=10), *(pod(f"web-{n}", f"{10 + n}") for n in range(9))], "--for=1m")
    decision = next(step["text"] for step in answer["steps"] if step["what"] == "decision")
    assert len(decision) > 256
    assert all(f"shop/web-{number}" in decision for number in range(9))


def test_a_decision_names_the_nodes_for_the_minimum_apart() -> None:
    _, answer = found([group(minNodes=1), *(pod(f"web-{n}", "2") for n in range(3))], "--for=1m")
    assert texts(answer, "group")[0] == (
        "decision: add 1 small: the group is below minNodes; add 2 small: pods do not fit on the nodes there are"
    )


def test_a_table_has_no_row_for_reasons_in_another_order() -> None:
    steps: list[Step] = []
    observer = Observer(VirtualClock(), Catalog(), lambda *_: None, steps.append)
    for text in ("never fits: b; c", "never fits: b; c", "c; never fits: b", "never fits: d"):
        observer._show("pod", "shop/web-0", "waits", text)
    assert [(step.at, step.text) for step in steps] == [
        (timedelta(0), "never fits: b; c"),
        (timedelta(0), "never fits: d"),
    ]


def test_the_end_names_each_node_with_its_use_and_why_it_stays() -> None:
    objects = [group(minNodes=1), workload("Deployment", "500m", replicas=3)]
    code, answer = found(objects, "--for=20m")
    (node,) = answer["nodes"]
    pods = [each for each in answer["pods"] if each["node"] == node["name"]]
    assert code == 0
    assert (node["group"], node["instanceType"], node["zone"], node["price"]) == (
        "default/workers",
        "small",
        "fra",
        0.02,
    )
    assert (node["readyAt"], node["cpuPercent"], node["memoryPercent"]) == (47, 75, 0)
    assert node["pods"] == sorted(each["name"] for each in pods)
    assert {each["state"] for each in pods} == {"Running"}
    assert node["stays"] == "needed: utilized: it is not underutilized"
    last = " ".join(ask(objects, "--for=20m").stdout.splitlines()[-1].split())
    assert last == f"{node['name']} small fra 75 % 0 % 3 {node['stays']}"


def test_the_peak_is_the_most_at_once() -> None:
    _, answer = found([group(), job("2", "5m"), pod("web-0", "2")], "--for=30m")
    assert (answer["peakNodes"], answer["peakPricePerHour"], answer["pricePerHour"]) == (2, 0.04, 0.02)


def test_a_price_that_is_not_known_is_not_0() -> None:
    objects = [group(offeringIDs=["free"]), pod("web-0", "1")]
    _, answer = found(objects, "--for=2m")
    assert [answer[name] for name in ("pricePerHour", "cost", "peakPricePerHour")] == [None, None, None]
    assert answer["nodes"][0]["price"] is None
    done = ask(objects, "--for=2m")
    assert "1 free, unknown an hour; most at once: 1, unknown an hour; cost so far: unknown" in done.stdout
    assert "types.json: no price of free in fra: what such nodes cost is unknown" in done.stderr


def test_steps_have_their_parts_as_fields() -> None:
    _, answer = found([group(), job("1", "5m")], "--for=20m")
    by_what = {(step["kind"], step["what"]): step for step in reversed(answer["steps"])}
    ordered = by_what["node", "ordered"]
    assert (ordered["instanceType"], ordered["zone"], ordered["price"], len(ordered["pods"])) == (
        "small",
        "fra",
        0.02,
        1,
    )
    assert by_what["group", "event"]["reason"] == "ScalingUp"
    assert by_what["group", "condition"]["type"] == "Scaling"
    assert by_what["node", "phase"]["phase"] == "Provisioning"
    assert by_what["pod", "runs"]["node"] == ordered["object"]


def rows_of(heading: str) -> list[tuple[list[str], set[str]]]:
    """Return the names in both columns of a table of the page."""
    table = PAGE.read_text(encoding="utf-8").partition(f"| {heading} |")[2].partition("\n\n")[0]
    cells = (row.strip("| ").split(" | ", 1) for row in table.splitlines()[2:])
    return [(re.findall(r"`(\w+)", name), {*re.findall(r"`(\w+)`", "".join(rest))}) for name, *rest in cells]


def test_the_page_has_all_fields_of_the_json() -> None:
    objects = [group(minNodes=1), job("1", "5m"), pod("web-0", "1"), pod("giant", "64")]
    _, answer = found([*objects, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}], "--for=40m")
    fields = {name: known for names, known in rows_of("field") for name in names}
    assert fields.keys() == answer.keys()
    for name in ("leftOut", "pods", "nodes"):
        assert {key for each in answer[name] for key in each} <= fields[name]
    steps = {name: known for names, known in rows_of("`what` of a step") for name in names}
    for step in answer["steps"]:
        assert step.keys() == {"at", "kind", "object", "what", "text", *steps[step["what"]]}
    # Pods that fail, or that are removed, are those of other tests.
    assert steps.keys() - {step["what"] for step in answer["steps"]} <= {"starts", "failed", "ends", "gone"}


def test_the_page_has_all_fields_of_a_group() -> None:
    for heading, model in (
        ("field of `spec`", NodeGroupSpec),
        ("field of `spec.scaleUpPolicy`", ScaleUpPolicy),
        ("field of `spec.scaleDownPolicy`", ScaleDownPolicy),
    ):
        policies = {"scaleUpPolicy", "scaleDownPolicy"}
        known = {each.alias or name for name, each in model.model_fields.items()} - policies
        assert {name for names, _ in rows_of(heading) for name in names} == known


def daemon_set(**spec: Any) -> dict[str, Any]:
    found = workload("DaemonSet", "500m", name="agent")
    found["spec"]["selector"] = {"matchLabels": {"app": "agent"}}
    found["spec"]["template"]["metadata"]["labels"] = {"app": "agent"}
    found["spec"]["template"]["spec"] |= spec
    return found


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        pytest.param({"tolerations": [{"operator": "Exists"}]}, 0, id="tolerates that the node is not ready"),
        pytest.param({"priorityClassName": "system-node-critical"}, 0, id="has a priority"),
        pytest.param({}, 1, id="comes after the pods that wait"),
    ],
)
def test_pods_of_daemon_sets_come_first_as_in_a_cluster(spec: dict[str, Any], status: int) -> None:
    """They lose their place if they do neither: https://github.com/kubernetes/kubernetes/issues/140984."""
    waiting = [pod(f"web-{number}", "500m") for number in range(4)]
    code, answer = found([group(maxNodes=1, offeringIDs=["small"]), daemon_set(**spec), *waiting], "--for=5m")
    assert [each["name"] for each in answer["pods"] if each["runs"] and "agent" in each["name"]] == (
        [] if status else [each["name"] for each in answer["pods"] if "agent" in each["name"]]
    )
    agent = next(text for text in texts(answer, "pod") if "other pods came first" in text) if status else ""
    assert agent.endswith("; with a priorityClassName its pods come before others") == bool(status)
    assert code == 1
