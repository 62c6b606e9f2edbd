"""Pods: the groups they fall into, and the requests that utilizations are compared with.

Both are found in one pass with a short way for ordinary pods. The rules are written down here once more, pod by pod.
"""

from collections.abc import Mapping
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.autoscaling.algorithm import Container, Pod, Readiness, Sample, Settings, Unavailable, group_pods, pod_requests
from ocf.autoscaling.algorithm.pod import PodLevelResources
from ocf.autoscaling.algorithm.pod_groups import PodGroups, is_unready, measured_samples
from tests.autoscaling.algorithm.test_properties import NOON, PODS, SAMPLES

_SETTINGS = Settings()
_GROUPS = ("ready", "unready", "missing", "ignored")
_ORDINARY = Pod(
    name="web-0",
    started=NOON - timedelta(hours=1),
    ready=Readiness("True", NOON - timedelta(hours=1)),
    containers=(Container("app", {"cpu": 250}),),
)


def _group(pod: Pod, samples: Mapping[str, Sample], resource: str) -> str:
    sample = samples.get(pod.name)
    if pod.deleted or pod.phase == "Failed":
        return "ignored"
    if pod.phase == "Pending":
        return "unready"
    if sample is None:
        return "missing"
    return "unready" if resource == "cpu" and is_unready(pod, sample, _SETTINGS, NOON) else "ready"


@given(pods=PODS, samples=SAMPLES, resource=st.sampled_from(["cpu", "memory", ""]))
def test_each_pod_is_in_one_group(pods: list[Pod], samples: dict[str, Sample], resource: str) -> None:
    """Phase and deletion decide first, then a missing sample, then readiness for cpu."""
    found = group_pods(pods, samples, resource=resource, settings=_SETTINGS, now=NOON)

    named = {group: tuple(pod.name for pod in pods if _group(pod, samples, resource) == group) for group in _GROUPS}
    assert found == PodGroups(len(named["ready"]), named["unready"], named["missing"], named["ignored"])


@pytest.mark.parametrize(
    ("age", "ready"),
    [
        pytest.param(timedelta(minutes=5), True, id="exactly the initialization period"),
        pytest.param(timedelta(minutes=5) - timedelta(microseconds=1), False, id="younger"),
    ],
)
def test_a_pod_as_old_as_the_initialization_period_is_ready(age: timedelta, *, ready: bool) -> None:
    """The sample's window began before this pod became ready, which matters to a younger pod only."""
    pod = Pod(name="web-0", started=NOON - age, ready=Readiness("True", NOON))
    samples = {"web-0": Sample(400, NOON)}

    found = group_pods([pod], samples, resource="cpu", settings=_SETTINGS, now=NOON)

    assert found == (PodGroups(1) if ready else PodGroups(0, ("web-0",)))


@given(samples=SAMPLES)
def test_the_sum_of_the_measured_samples_leaves_nonsense_out(samples: dict[str, Sample]) -> None:
    true = {name: sample for name, sample in samples.items() if 0 <= sample.value < 2**63 - 1}

    assert measured_samples(samples) == (true, sum(sample.value for sample in true.values()))


def _requested(pod: Pod, resource: str) -> int | None:
    """Add up the requests of the containers that keep running; None if one is missing."""
    running = [*pod.containers, *(each for each in pod.init_containers if each.restartable)]
    found = [each.requests.get(resource) for each in running]
    return None if None in found else sum(each or 0 for each in found)


@given(pods=PODS, resource=st.sampled_from(["cpu", "memory"]))
def test_a_pod_requests_what_its_running_containers_request_together(pods: list[Pod], resource: str) -> None:
    """A pod without containers requests nothing; one container without a request makes the whole unknown."""
    found = pod_requests(pods, resource, pod_level=False)

    expected = {pod.name: _requested(pod, resource) for pod in pods}
    lacking = next((pod for pod in pods if _requested(pod, resource) is None), None)
    if lacking is None:
        assert found == expected
    else:
        assert isinstance(found, Unavailable)
        assert found.message.endswith(f"of Pod {lacking.name}")


def test_the_first_container_without_a_request_is_named() -> None:
    sidecar = Container("mesh", {"memory": 1}, restartable=True)
    pod = Pod(name="web-0", containers=(Container("app", {"cpu": 250}),), init_containers=(sidecar,))

    assert pod_requests([pod], "cpu") == Unavailable("missing request for cpu in container mesh of Pod web-0")


def test_pod_level_requests_replace_those_of_the_containers() -> None:
    level = PodLevelResources({"cpu": 900}, {"cpu": 10})
    pod = Pod(name="web-0", containers=(Container("app", {"cpu": 250}),), pod_level=level)

    assert pod_requests([pod], "cpu") == {"web-0": 910}
    assert pod_requests([pod], "cpu", pod_level=False) == {"web-0": 250}


def test_what_is_derived_belongs_to_the_pod_and_is_no_part_of_its_value() -> None:
    assert (_ORDINARY.settled_since, _ORDINARY.requests) == (_ORDINARY.started, {"cpu": 250})
    assert "settled_since" not in repr(_ORDINARY)
