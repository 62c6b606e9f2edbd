"""What the Jobs of a JobSet lead to: decisions about values, without a cluster."""

from typing import Any, Final

import pytest

from examples.jobset.model import JobSet
from examples.jobset.objects import jobs, service
from examples.jobset.policy import Child, Decision, child_of, decide
from ocf.objects import Manifest

PREFIX: Final = "jobset.sigs.k8s.io"
TEMPLATE: Final[dict[str, Any]] = {
    "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}}
}
TWO: Final[list[dict[str, Any]]] = [
    {"name": "head", "template": TEMPLATE},
    {"name": "body", "replicas": 2, "template": TEMPLATE},
]
NAMES: Final = ["set-head-0", "set-body-0", "set-body-1"]
RESTARTED: Final = {"restarts": 1, "restartsCountTowardsMax": 1}


def jobset(status: Manifest | None = None, **spec: Any) -> JobSet:
    manifest = {"metadata": {"name": "set", "namespace": "lab", "uid": "1"}, "spec": {"replicatedJobs": TWO, **spec}}
    return JobSet.model_validate(manifest | ({"status": status} if status else {}))


def job(
    name: str,
    *,
    end: str = "",
    attempt: int = 0,
    own: int = 0,
    status: Manifest | None = None,
    of: Manifest | None = None,
) -> Child:
    """Return a Job of the JobSet, as an API server shows it."""
    _, replicated, index = name.split("-")
    labels = {
        "replicatedjob-name": replicated,
        "job-index": index,
        "restart-attempt": str(attempt),
        "job-restart-attempt": str(own),
    }
    marked = {f"{PREFIX}/{label}": value for label, value in labels.items()}
    conditions = [{"type": end, "status": "True", **(of or {})}] if end else []
    return child_of(
        {
            "metadata": {"name": name, "uid": name},
            "spec": {"parallelism": 1, "template": {"metadata": {"labels": marked}}},
            "status": {"conditions": conditions, **(status or {})},
        }
    )


def applied(found: JobSet, decision: Decision) -> list[str]:
    return [one["metadata"]["name"] for one in jobs(found, decision)]


def all_of(**by_name: str) -> list[Child]:
    """Return all Jobs, those that are named with their ends."""
    return [job(name, end=by_name.get(name.removeprefix("set-").replace("-", ""), "")) for name in NAMES]


@pytest.mark.parametrize(
    ("spec", "ends", "expected"),
    [
        pytest.param({}, {}, [], id="nothing has ended"),
        pytest.param({}, {"head0": "Complete", "body0": "Complete"}, [], id="one of all is missing"),
        pytest.param({}, {"head0": "Complete", "body0": "Complete", "body1": "Complete"}, ["Completed"], id="all"),
        pytest.param(
            {"successPolicy": {"operator": "All", "targetReplicatedJobs": ["head"]}},
            {"head0": "Complete"},
            ["Completed"],
            id="all of the targets",
        ),
        pytest.param(
            {"successPolicy": {"operator": "All", "targetReplicatedJobs": ["head"]}},
            {"body0": "Complete", "body1": "Complete"},
            [],
            id="others do not count",
        ),
        pytest.param({"successPolicy": {"operator": "Any"}}, {"body1": "Complete"}, ["Completed"], id="any"),
        pytest.param({}, {"body1": "Failed"}, ["Failed"], id="a failure without a policy"),
        pytest.param(
            {"successPolicy": {"operator": "Any"}},
            {"head0": "Complete", "body1": "Failed"},
            ["Failed"],
            id="a failure before a success",
        ),
    ],
)
def test_the_end_follows_from_the_ends_of_the_jobs(
    spec: dict[str, Any], ends: dict[str, str], expected: list[str]
) -> None:
    decision = decide(jobset(**spec), all_of(**ends))
    assert [one.type for one in decision.transitions if one.status == "True"] == expected
    assert decision.status.terminal_state == (expected[0] if expected else None)


RULES: Final[list[dict[str, Any]]] = [
    {"name": "known", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]},
    {
        "name": "host",
        "action": "RestartJobSetAndIgnoreMaxRestarts",
        "onJobFailureMessagePatterns": ["[", "^host .* is"],
    },
    {"name": "single", "action": "RestartJob", "targetReplicatedJobs": ["body"]},
]


@pytest.mark.parametrize(
    ("failed", "stored", "reason", "restarts", "own"),
    [
        pytest.param(
            {"reason": "PodFailurePolicy"}, {}, "FailJobSetFailurePolicyAction", (0, 0), None, id="the first rule wins"
        ),
        pytest.param(
            {"message": "host a is gone"},
            {"restartsCountTowardsMax": 9},
            "RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction",
            (1, 9),
            None,
            id="a restart that does not count, after an invalid pattern",
        ),
        pytest.param({}, {}, "RestartJobFailurePolicyAction", (0, 0), [0, 1], id="a single Job"),
        pytest.param(
            {}, {"restartsCountTowardsMax": 2}, "ReachedMaxRestarts", (0, 2), None, id="no restart of a Job is left"
        ),
    ],
)
def test_the_first_rule_that_matches_decides(
    failed: dict[str, str], stored: Manifest, reason: str, restarts: tuple[int, int], own: list[int] | None
) -> None:
    found = jobset(stored, failurePolicy={"maxRestarts": 2, "rules": RULES})
    decision = decide(found, [job("set-head-0"), job("set-body-0"), job("set-body-1", end="Failed", of=failed)])
    assert decision.transitions[0].reason == reason
    assert (decision.status.restarts, decision.status.restarts_count_towards_max) == restarts
    assert decision.status.replicated_jobs_status[1].job_restarts == own


def test_restarts_of_single_jobs_count_together_with_those_of_the_jobset() -> None:
    numbers = {"ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}
    body = {"name": "body", **numbers, "jobRestarts": [1, 0], "jobRestartsCountTowardsMax": [1, 0]}
    found = jobset({"restartsCountTowardsMax": 1, "replicatedJobsStatus": [body]}, failurePolicy={"maxRestarts": 2})
    decision = decide(found, [job("set-head-0", end="Failed")])
    assert decision.transitions[0].reason == "ReachedMaxRestarts"


def test_only_the_failed_job_is_replaced_by_its_own_restart() -> None:
    found = jobset(failurePolicy={"maxRestarts": 1, "rules": [{"action": "RestartJob"}]})
    decision = decide(found, [job("set-head-0"), job("set-body-0", end="Failed"), job("set-body-1")])
    assert [one.name for one in decision.obsolete] == ["set-body-0"]
    # Its name is taken until it is gone.
    assert applied(found, decision) == ["set-head-0", "set-body-1"]


def test_the_job_that_failed_first_is_named() -> None:
    early, late = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
    failed = [
        job("set-head-0", end="Failed", of={"lastTransitionTime": late}),
        job("set-body-0", end="Failed", of={"lastTransitionTime": early}),
    ]
    assert "(first failed job: set-body-0)" in decide(jobset(), failed).transitions[0].message


def test_a_restart_is_counted_once_although_the_status_was_not_stored_before_the_jobs_were_deleted() -> None:
    found = jobset(failurePolicy={"maxRestarts": 3})
    decision = decide(found, all_of(body0="Failed"))
    assert decision.status.restarts == 1
    assert [one.name for one in decision.obsolete] == NAMES
    stored = jobset(RESTARTED, failurePolicy={"maxRestarts": 3})
    # The failed Job still exists.
    assert decide(stored, all_of(body0="Failed")).status.restarts == 1


def test_a_lost_status_is_found_in_the_jobs() -> None:
    """A backup that is restored without statuses starts no further attempt."""
    found = jobset()
    decision = decide(found, [job(name, attempt=2, own=1) for name in NAMES])
    assert (decision.status.restarts, decision.obsolete) == (2, ())
    labels = [one["metadata"]["labels"] for one in jobs(found, decision)]
    assert {(one[f"{PREFIX}/restart-attempt"], one[f"{PREFIX}/job-restart-attempt"]) for one in labels} == {("2", "1")}


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [pytest.param("Recreate", NAMES[1:], id="each by itself"), pytest.param("BlockingRecreate", [], id="all together")],
)
def test_jobs_of_the_next_attempt_wait_for_those_of_the_last_one(strategy: str, expected: list[str]) -> None:
    """Of https://github.com/kubernetes-sigs/jobset/issues/684."""
    found = jobset(RESTARTED, failurePolicy={"maxRestarts": 1, "restartStrategy": strategy})
    assert applied(found, decide(found, [job("set-head-0")])) == expected


READY: Final = {"active": 1, "ready": 1}
IN_ORDER: Final[dict[str, Any]] = {"startupPolicy": {"startupPolicyOrder": "InOrder"}}


def depending(status: str) -> dict[str, Any]:
    head, body = TWO
    return {"replicatedJobs": [head, {**body, "dependsOn": [{"name": "head", "status": status}]}]}


@pytest.mark.parametrize(
    ("spec", "head", "expected"),
    [
        pytest.param(IN_ORDER, {}, NAMES[:1], id="in order, not ready"),
        pytest.param(IN_ORDER, {"status": READY}, NAMES, id="in order, ready"),
        pytest.param({**IN_ORDER, "suspend": True}, {}, NAMES[1:], id="in order, suspended: all are made"),
        pytest.param(depending("Ready"), {}, NAMES[:1], id="depends, not ready"),
        pytest.param(depending("Ready"), {"status": READY}, NAMES, id="depends, ready"),
        pytest.param(depending("Complete"), {"status": READY}, NAMES[:1], id="depends on the end, ready"),
        pytest.param(depending("Complete"), {"end": "Complete"}, NAMES[1:], id="depends on the end, which has come"),
        pytest.param({**depending("Ready"), "suspend": True}, {}, [], id="depends, suspended"),
    ],
)
def test_a_replicated_job_waits_for_those_before_it(
    spec: dict[str, Any], head: dict[str, Any], expected: list[str]
) -> None:
    found = jobset(**spec)
    assert applied(found, decide(found, [job("set-head-0", **head)])) == expected


def test_a_pod_that_is_not_ready_any_more_suspends_no_later_job() -> None:
    found = jobset(**IN_ORDER)
    decision = decide(found, [job(name) for name in NAMES])
    assert {one["spec"]["suspend"] for one in jobs(found, decision)} == {False}


def test_a_condition_that_was_never_true_does_not_become_false() -> None:
    assert decide(jobset(), []).transitions == ()


def test_unknown_fields_of_a_template_are_passed_on() -> None:
    """A field that a newer API server knows is not this controller's to judge."""
    pod = {"containers": [], "fieldOfTomorrow": {"a": 1}}
    found = jobset(replicatedJobs=[{"name": "head", "template": {"spec": {"template": {"spec": pod}}}}])
    (one,) = jobs(found, decide(found, []))
    assert one["spec"]["template"]["spec"]["fieldOfTomorrow"] == {"a": 1}


def test_labels_of_the_controller_win_over_those_of_the_template() -> None:
    forged = {"metadata": {"labels": {f"{PREFIX}/restart-attempt": "99", "mine": "1"}}}
    template = {"spec": {"template": {**forged, "spec": {"containers": []}}}, **forged}
    found = jobset(replicatedJobs=[{"name": "head", "template": template}])
    (one,) = jobs(found, decide(found, []))
    for metadata in (one["metadata"], one["spec"]["template"]["metadata"]):
        assert (metadata["labels"][f"{PREFIX}/restart-attempt"], metadata["labels"]["mine"]) == ("0", "1")


def test_jobs_are_numbered_across_replicated_jobs_and_groups() -> None:
    head, body = TWO
    found = jobset(replicatedJobs=[head, {**body, "groupName": "crew"}, {**head, "name": "tail", "groupName": "crew"}])
    labels = [one["metadata"]["labels"] for one in jobs(found, decide(found, []))]
    numbers = ["job-global-index", "global-replicas", "job-group-index", "group-replicas"]
    assert [[one[f"{PREFIX}/{name}"] for name in numbers] for one in labels] == [
        ["0", "4", "0", "1"],
        ["1", "4", "0", "3"],
        ["2", "4", "1", "3"],
        ["3", "4", "2", "3"],
    ]


@pytest.mark.parametrize(("given", "name"), [("", "set"), ("shared", "shared")])
def test_pods_find_the_coordinator_and_each_other(given: str, name: str) -> None:
    found = jobset(network={"subdomain": given}, coordinator={"replicatedJob": "head"})
    one = next(iter(jobs(found, decide(found, []))))
    assert service(found)["metadata"]["name"] == one["spec"]["template"]["spec"]["subdomain"] == name
    assert one["metadata"]["annotations"][f"{PREFIX}/coordinator"] == f"set-head-0-0.{name}"


EXCLUSIVE: Final = "alpha.jobset.sigs.k8s.io/exclusive-topology"
BY_LABEL: Final = "alpha.jobset.sigs.k8s.io/node-selector"


@pytest.mark.parametrize(
    ("annotations", "selector"),
    [
        pytest.param({EXCLUSIVE: "rack"}, None, id="by affinity"),
        pytest.param({EXCLUSIVE: "rack", BY_LABEL: "true"}, "lab_set-head-0", id="by labels of nodes"),
        pytest.param({BY_LABEL: "true"}, None, id="not exclusive"),
    ],
)
def test_exclusive_placement_by_labels_of_nodes(annotations: dict[str, str], selector: str | None) -> None:
    found = JobSet.model_validate(
        {
            "metadata": {"name": "set", "namespace": "lab", "annotations": annotations},
            "spec": {"replicatedJobs": [{"name": "head", "template": TEMPLATE}]},
        }
    )
    (one,) = jobs(found, decide(found, []))
    pod = one["spec"]["template"]["spec"]
    assert pod.get("nodeSelector", {}).get("alpha.jobset.sigs.k8s.io/namespaced-job") == selector
    assert one["metadata"]["annotations"].get(EXCLUSIVE) == annotations.get(EXCLUSIVE)
