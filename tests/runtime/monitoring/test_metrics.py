from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open
from prometheus_client.parser import text_string_to_metric_families as parse

from ocf.concepts import ApplyOperation, Attempt, Event
from ocf.concepts.recorder import Why
from ocf.errors import ConfigError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.monitoring import PrometheusRecorder, render_metrics

OWNER = ObjectKey("example.com/v1", "Shop", "corner", "town")
APPLIES = "ocf_resource_apply_total"
FAILURES = "ocf_resource_apply_errors_total"
LABELS = {
    "controller": "shop",
    "owner_kind": "Shop",
    "component": "web",
    "resource": "deployment",
    "kind": "Deployment",
}


@pytest.fixture
def recorder() -> PrometheusRecorder:
    return PrometheusRecorder(controller="shop")


def condition(
    kind: str = "WebReady", status: str = "False", reason: str = "Creating", since: str = "12:00"
) -> Manifest:
    return {"type": kind, "status": status, "reason": reason, "lastTransitionTime": f"2026-01-01T{since}:00Z"}


def samples(recorder: PrometheusRecorder, name: str) -> list[tuple[dict[str, str], float]]:
    """Return the series of a metric as a scrape sees them."""
    families = parse(recorder.render().body.decode())
    return [(dict(each.labels), each.value) for family in families for each in family.samples if each.name == name]


def shown(recorder: PrometheusRecorder) -> list[tuple[str, ...]]:
    """Return condition, status and reason of each condition series."""
    found = samples(recorder, "ocf_controller_condition")
    return [(labels["condition"], labels["status"], labels["reason"]) for labels, _ in found]


class TestAttempts:
    def test_an_apply_is_counted_by_what_it_did_and_why(
        self, recorder: PrometheusRecorder, attempt: Callable[..., Attempt]
    ) -> None:
        recorder.attempted(attempt(operation=ApplyOperation.CREATED, why=Why.ABSENT))
        recorder.attempted(attempt())
        recorder.attempted(attempt())

        assert samples(recorder, APPLIES) == [
            ({**LABELS, "operation": "created", "why": "absent"}, 1),
            ({**LABELS, "operation": "none", "why": "equal"}, 2),
        ]
        assert samples(recorder, FAILURES) == []

    def test_a_failure_is_counted_as_nothing_else(
        self, recorder: PrometheusRecorder, attempt: Callable[..., Attempt]
    ) -> None:
        recorder.attempted(attempt(operation=None, why=Why.FAILED))

        assert samples(recorder, APPLIES) == []
        assert samples(recorder, FAILURES) == [(LABELS, 1)]

    @given(why=st.lists(st.sampled_from(Why), max_size=20))
    def test_each_attempt_is_counted_once(self, why: list[Why]) -> None:
        recorder = PrometheusRecorder(controller="shop")
        for each in why:
            done = None if each is Why.FAILED else ApplyOperation.NONE
            recorder.attempted(
                Attempt(owner=OWNER, component="web", resource=OWNER, label="shop", operation=done, why=each)
            )

        counted = [*samples(recorder, APPLIES), *samples(recorder, FAILURES)]
        assert sum(value for _, value in counted) == len(why)

    @pytest.mark.parametrize("label", ["", "  "])
    def test_a_blank_label_is_the_kind(
        self, recorder: PrometheusRecorder, attempt: Callable[..., Attempt], label: str
    ) -> None:
        recorder.attempted(attempt(label=label))

        assert [labels["resource"] for labels, _ in samples(recorder, APPLIES)] == ["deployment"]

    def test_owners_share_their_series(self, recorder: PrometheusRecorder, attempt: Callable[..., Attempt]) -> None:
        for number in range(100):
            recorder.attempted(attempt(owner=ObjectKey("example.com/v1", "Shop", f"shop-{number}", "town")))

        assert [value for _, value in samples(recorder, APPLIES)] == [100]

    def test_labels_without_end_end_up_in_one_series(self, attempt: Callable[..., Attempt]) -> None:
        """A component that is named after its owner must not fill the memory of operator and Prometheus."""
        recorder = PrometheusRecorder(controller="shop", limit=2)
        for number in range(10):
            recorder.attempted(attempt(component=f"web-{number}"))
            recorder.attempted(attempt(component=f"web-{number}", operation=None, why=Why.FAILED))

        for metric in (APPLIES, FAILURES):
            found = {labels["component"]: value for labels, value in samples(recorder, metric)}
            assert found == {"web-0": 1, "web-1": 1, "other": 8}

    def test_a_long_label_is_cut_and_stays_one_series(self, attempt: Callable[..., Attempt]) -> None:
        recorder = PrometheusRecorder(controller="shop", limit=1)
        for _ in range(2):
            recorder.attempted(attempt(component="w" * 300))

        ((labels, value),) = samples(recorder, APPLIES)
        assert (labels["component"], value) == (f"{'w' * 252}…", 2)

    def test_events_are_not_counted_again(self, recorder: PrometheusRecorder, event: Callable[..., Event]) -> None:
        before = recorder.render()
        recorder.happened(event())

        assert recorder.render() == before


class TestConditions:
    def test_the_value_is_when_the_status_changed(self, recorder: PrometheusRecorder) -> None:
        recorder.observed(OWNER, [condition()])

        place = {"controller": "shop", "kind": "Shop", "name": "corner", "namespace": "town", "id": "town/corner"}
        labels = place | {"condition": "WebReady", "status": "False", "reason": "Creating"}
        assert samples(recorder, "ocf_controller_condition") == [(labels, 1767268800.0)]

    def test_of_one_condition_there_is_one_series(self, recorder: PrometheusRecorder) -> None:
        """What held before does not stay beside what holds now."""
        recorder.observed(OWNER, [condition(), condition("DataReady")])
        recorder.observed(OWNER, [condition(status="True", reason="Healthy"), condition("DataReady")])

        assert shown(recorder) == [("WebReady", "True", "Healthy"), ("DataReady", "False", "Creating")]

    def test_a_condition_that_the_owner_lost_is_no_longer_shown(self, recorder: PrometheusRecorder) -> None:
        recorder.observed(OWNER, [condition(), condition("DataReady")])
        recorder.observed(OWNER, [condition("DataReady")])

        assert shown(recorder) == [("DataReady", "False", "Creating")]

    def test_conditions_of_a_removed_owner_go_and_others_stay(self, recorder: PrometheusRecorder) -> None:
        other = ObjectKey("example.com/v1", "Shop", "east", "town")
        recorder.observed(OWNER, [condition(), condition("DataReady")])
        recorder.observed(other, [condition()])

        assert recorder.remove_conditions_for(OWNER) == 2
        assert recorder.remove_conditions_for(OWNER) == 0
        assert [labels["id"] for labels, _ in samples(recorder, "ocf_controller_condition")] == ["town/east"]

    def test_an_owner_without_a_namespace_keeps_the_slash(self, recorder: PrometheusRecorder) -> None:
        recorder.observed(ObjectKey("example.com/v1", "Mall", "north"), [condition()])

        ((labels, _),) = samples(recorder, "ocf_controller_condition")
        assert (labels["namespace"], labels["id"]) == ("", "/north")

    @pytest.mark.parametrize("since", [None, "", "yesterday"])
    def test_a_condition_without_a_time_has_no_value(self, recorder: PrometheusRecorder, since: str | None) -> None:
        recorder.observed(OWNER, [{**condition(), "lastTransitionTime": since}, {"type": "Bare"}])

        assert shown(recorder) == []

    def test_a_long_reason_is_cut(self, recorder: PrometheusRecorder) -> None:
        recorder.observed(OWNER, [condition(reason="R" * 1024)])

        ((_, _, reason),) = shown(recorder)
        assert len(reason) == 253

    def test_two_versions_of_a_kind_are_one_owner(self, recorder: PrometheusRecorder) -> None:
        recorder.observed(OWNER, [condition()])
        recorder.observed(ObjectKey("example.com/v2", "Shop", "corner", "town"), [condition(status="True")])

        assert shown(recorder) == [("WebReady", "True", "Creating")]


class TestRegistries:
    def test_two_recorders_know_nothing_of_each_other(self, attempt: Callable[..., Attempt]) -> None:
        one, other = PrometheusRecorder(controller="shop"), PrometheusRecorder(controller="shop")
        one.attempted(attempt())

        assert samples(other, APPLIES) == []

    def test_controllers_of_one_process_share_the_metrics(
        self, recorder: PrometheusRecorder, attempt: Callable[..., Attempt]
    ) -> None:
        mall = recorder.for_controller("mall")
        recorder.attempted(attempt())
        mall.attempted(attempt())
        recorder.observed(OWNER, [condition()])
        mall.observed(OWNER, [condition("MallReady")])

        assert [labels["controller"] for labels, _ in samples(recorder, APPLIES)] == ["shop", "mall"]
        assert mall.remove_conditions_for(OWNER) == 1
        assert [name for name, *_ in shown(recorder)] == ["WebReady"]

    def test_the_same_metrics_twice_in_a_registry_are_refused(self) -> None:
        registry = CollectorRegistry()
        PrometheusRecorder(controller="shop", registry=registry)

        with pytest.raises(ConfigError, match=r'controller "mall": the registry has them already.*for_controller'):
            PrometheusRecorder(controller="mall", registry=registry)

    @pytest.mark.parametrize("namespace", ["", "9shops", "my-shops", "shops "])
    def test_a_namespace_that_names_no_metric_is_refused(self, namespace: str) -> None:
        with pytest.raises(ConfigError, match="namespace of the metrics must match"):
            PrometheusRecorder(namespace, controller="shop")


class TestExposition:
    @pytest.mark.parametrize(
        ("accept", "content_type"),
        [
            pytest.param("", "text/plain; version=0.0.4", id="no header"),
            pytest.param("text/html", "text/plain; version=0.0.4", id="a browser"),
            pytest.param(
                "application/openmetrics-text; version=1.0.0", "application/openmetrics-text", id="openmetrics"
            ),
        ],
    )
    def test_the_format_is_what_was_asked_for(
        self, recorder: PrometheusRecorder, attempt: Callable[..., Attempt], accept: str, content_type: str
    ) -> None:
        recorder.attempted(attempt())
        answer = render_metrics(recorder.registry, accept)

        assert answer.content_type.startswith(content_type)
        reader = parse_open if "openmetrics" in answer.content_type else parse
        assert {family.name: family.type for family in reader(answer.body.decode())} == {
            "ocf_resource_apply": "counter",
            "ocf_resource_apply_errors": "counter",
            "ocf_controller_condition": "gauge",
        }

    @given(reason=st.text(max_size=30))
    def test_any_text_survives_as_a_label(self, reason: str) -> None:
        recorder = PrometheusRecorder(controller="shop")
        recorder.observed(OWNER, [condition(reason=reason)])

        assert shown(recorder) == [("WebReady", "False", reason)]
