"""Objects of a recording from series of Prometheus."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.simulation.recording.prometheus import (
    HPA_SOURCES,
    MOST_POINTS,
    Matrix,
    Need,
    RangeObjects,
    RangeSpec,
    RecordedTarget,
    Series,
    SeriesSelection,
    Steps,
    matrix_of,
    missing_series,
    target_sources,
)

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HPA = {"horizontalpodautoscaler": "web"}
INFO = {"scaletargetref_api_version": "apps/v1", "scaletargetref_kind": "Deployment", "scaletargetref_name": "web"}
EXTERNAL = {"metric": {"name": "jobs"}, "target": {"type": "AverageValue", "averageValue": "10"}}


def one(value: float, **labels: str) -> Series:
    return Series(labels, {0: value})


def series(**found: list[Series]) -> dict[str, Matrix]:
    return {key: Matrix(tuple(each)) for key, each in found.items()}


def spec_of(manifest: Manifest | None = None, **found: list[Series]) -> RangeSpec:
    known: dict[str, list[Series]] = {"max": [one(9)], "info": [one(1, **INFO)], "current": [one(4)]}
    return RangeSpec(SeriesSelection("shop", "web"), series(**{**known, **found}), manifest)


def hpa_with(*metrics: Manifest) -> Manifest:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {"spec": {"scaleTargetRef": target, "maxReplicas": 3, "metrics": list(metrics)}}


def objects(spec: RangeSpec, **found: list[Series]) -> list[Manifest]:
    target = RecordedTarget("Deployment", "web")
    builder = RangeObjects(spec, target, SeriesSelection("shop", "web"))
    [(_, made)] = builder.part(Steps(NOON, 1, MINUTE), 0, series(**found))
    return made


def pod_info(name: str, kind: str = "ReplicaSet", owner: str = "web-5d4f8c") -> Series:
    return one(1, pod=name, created_by_kind=kind, created_by_name=owner)


class TestSteps:
    @given(st.integers(1, 40_000), st.integers(1, MOST_POINTS), st.integers(1, 3600))
    def test_parts_have_each_instant_once_and_never_too_many(self, count: int, most: int, seconds: int) -> None:
        steps = Steps(NOON, count, timedelta(seconds=seconds))
        parts = list(steps.parts(most))

        assert sum(part.count for part in parts) == count
        assert all(part.count <= most for part in parts)
        assert [part.start for part in parts] == [steps.at(number) for number in range(0, count, most)]
        assert parts[-1].end == steps.end

    @given(st.integers(0, 50_000), st.integers(1, 100_000))
    def test_an_instant_is_found_by_its_timestamp_in_milliseconds(self, number: int, milliseconds: int) -> None:
        steps = Steps(NOON + timedelta(microseconds=123_456), number + 1, timedelta(milliseconds=999 + milliseconds))

        assert steps.number(round(steps.at(number).timestamp(), 3)) == number


class TestMatrix:
    def test_values_that_are_not_finite_are_left_out(self) -> None:
        found = {"metric": {}, "values": [[0, "NaN"], [60, "+Inf"], [120, "3"]]}
        answer = {"status": "success", "data": {"resultType": "matrix", "result": [found]}}

        matrix = matrix_of(answer, Steps(datetime(1970, 1, 1, tzinfo=UTC), 3, MINUTE))

        assert [matrix.one(number) for number in range(3)] == [None, None, 3]

    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            pytest.param({"status": "error", "error": "too many"}, "the query failed: too many", id="failed"),
            pytest.param([], "not an answer of Prometheus", id="a list"),
            pytest.param({"status": "success", "data": {"resultType": "vector", "result": []}}, "not an", id="vector"),
            pytest.param(
                {"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}}]}}, "not an", id="cut"
            ),
            pytest.param(
                {
                    "status": "success",
                    "data": {"resultType": "matrix", "result": [{"metric": {}, "values": [[0, "x"]]}]},
                },
                "not an",
                id="no number",
            ),
        ],
    )
    def test_other_answers_are_errors(self, answer: object, message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            matrix_of(answer, Steps(NOON, 1, MINUTE))


class TestSpec:
    def test_without_a_manifest_it_has_what_the_series_have(self) -> None:
        target = [one(60, metric_name="cpu", metric_target_type="utilization", **HPA)]
        hpa = spec_of(target=target, min=[one(2)], desired=[one(5)]).at(0)

        assert hpa is not None
        assert hpa["spec"] == {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 9,
            "minReplicas": 2,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
                }
            ],
        }
        assert hpa["status"] == {"currentReplicas": 4, "desiredReplicas": 5}

    def test_targets_of_a_manifest_are_those_of_the_series(self) -> None:
        target = [one(12.5, metric_name="jobs", metric_target_type="average", **HPA)]
        hpa = spec_of(hpa_with({"type": "External", "external": EXTERNAL}), target=target).at(0)

        assert hpa is not None
        assert hpa["spec"]["maxReplicas"] == 9
        assert hpa["spec"]["metrics"][0]["external"]["target"] == {"type": "AverageValue", "averageValue": "12500m"}

    def test_a_metric_of_unknown_type_needs_a_manifest(self) -> None:
        target = [one(10, metric_name="jobs", metric_target_type="average", **HPA)]

        with pytest.raises(ConfigError, match=r"type of the metric jobs is not known.*--manifest"):
            spec_of(target=target).at(0)

    def test_a_target_that_no_series_has_needs_a_manifest(self) -> None:
        with pytest.raises(ConfigError, match=r"kube_horizontalpodautoscaler_info.*--manifest"):
            spec_of(info=[]).target()

    def test_metrics_that_no_series_has_need_a_manifest(self) -> None:
        with pytest.raises(ConfigError, match=r"kube_horizontalpodautoscaler_spec_target_metric.*--manifest"):
            spec_of().at(0)

    def test_conditions_have_the_same_meaning_with_swapped_labels(self) -> None:
        cpu = one(60, metric_name="cpu", metric_target_type="utilization")
        new = spec_of(
            target=[cpu],
            condition=[one(1, condition="AbleToScale", status="true"), one(0, condition="X", status="false")],
        )
        old = spec_of(
            target=[cpu],
            condition=[one(1, condition="true", status="AbleToScale"), one(0, condition="false", status="X")],
        )

        expected = [{"type": "AbleToScale", "status": "True"}]
        assert [(spec.at(0) or {})["status"]["conditions"] for spec in (new, old)] == [expected] * 2

    def test_it_is_missing_where_it_was_not_scraped(self) -> None:
        assert spec_of().at(1) is None


class TestObjects:
    @pytest.mark.parametrize(
        ("target", "pod", "counts"),
        [
            pytest.param(RecordedTarget("Deployment", "web"), pod_info("web-1"), True, id="of its ReplicaSet"),
            pytest.param(
                RecordedTarget("Deployment", "web"),
                pod_info("web-api-1", owner="web-api-7c9d"),
                False,
                id="of a longer name",
            ),
            pytest.param(
                RecordedTarget("StatefulSet", "web"),
                pod_info("web-0", "StatefulSet", "web"),
                True,
                id="of a StatefulSet",
            ),
            pytest.param(
                RecordedTarget("ReplicaSet", "web-5d4f8c"), pod_info("web-1"), True, id="of a ReplicaSet itself"
            ),
            pytest.param(
                RecordedTarget("Rollout", "web"), pod_info("web-1"), True, id="of a ReplicaSet of another kind"
            ),
            pytest.param(
                RecordedTarget("Deployment", "web"), pod_info("web-1", "Job", "web-5d4f8c"), False, id="of a Job"
            ),
            pytest.param(
                RecordedTarget("Deployment", "web", any_owner=True),
                pod_info("x", "Job", "y"),
                True,
                id="chosen by the user",
            ),
        ],
    )
    def test_pods_are_those_that_the_target_has_created(
        self, target: RecordedTarget, pod: Series, *, counts: bool
    ) -> None:
        assert target.created(pod) is counts

    def test_a_total_is_the_average_times_the_replicas(self) -> None:
        spec = spec_of(
            hpa_with({"type": "External", "external": EXTERNAL}),
            value=[one(2.5, metric_name="jobs", metric_target_type="average")],
        )
        [found] = [each for each in objects(spec) if each["kind"] == "ExternalMetricValue"]

        assert (found["metricName"], found["value"]) == ("jobs", "10000m")

    def test_a_metric_of_pods_has_its_average_in_each_pod(self) -> None:
        metric = {"type": "Pods", "pods": EXTERNAL}
        spec = spec_of(hpa_with(metric), value=[one(2.5, metric_name="jobs", metric_target_type="average")])
        found = [each for each in objects(spec, pod=[pod_info("web-1"), pod_info("web-2")]) if "metric" in each]

        assert [(each["describedObject"]["name"], each["value"]) for each in found] == [
            ("web-1", "2500m"),
            ("web-2", "2500m"),
        ]

    def test_a_metric_of_an_object_has_its_value(self) -> None:
        described = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"}
        target = {"type": "Value", "value": "100"}
        metric = {"type": "Object", "object": {**EXTERNAL, "describedObject": described, "target": target}}
        spec = spec_of(hpa_with(metric), value=[one(80, metric_name="jobs", metric_target_type="value")])
        [found] = [each for each in objects(spec) if "metric" in each]

        assert (found["describedObject"]["name"], found["value"]) == ("main", "80000m")

    def test_replicas_of_an_unknown_kind_are_those_in_the_status_of_the_hpa(self) -> None:
        [scale] = [each for each in objects(spec_of(hpa_with())) if each["kind"] == "Scale"]

        assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (4, 4)

    def test_a_pod_is_unready_since_its_start_and_ready_since_it_was_seen(self) -> None:
        spec = spec_of(hpa_with(), max=[Series({}, {0: 9, 1: 9})])
        builder = RangeObjects(spec, RecordedTarget("Deployment", "web"), SeriesSelection("shop", "web"))
        started = (NOON - timedelta(seconds=40)).timestamp()
        found = series(
            pod=[Series(pod_info("web-1").labels, {0: 1, 1: 1})],
            started=[Series({"pod": "web-1"}, {0: started, 1: started})],
            ready=[Series({"pod": "web-1"}, {0: 0, 1: 1})],
        )
        conditions = [
            each["status"]["conditions"][0]
            for _, made in builder.part(Steps(NOON, 2, MINUTE), 0, found)
            for each in made
            if each["kind"] == "Pod"
        ]

        assert [(each["status"], each["lastTransitionTime"]) for each in conditions] == [
            ("False", "2026-01-31T11:59:20Z"),
            ("True", "2026-01-31T12:01:00Z"),
        ]


def test_missing_series_are_named_with_what_to_do() -> None:
    sources = (*HPA_SOURCES, *target_sources("Deployment", ["cpu", "example.com/gpu"]))

    assert missing_series(sources, {"pod", "replicas"}, Need.REQUIRED) == [
        (
            "kube_horizontalpodautoscaler_spec_max_replicas or kube_hpa_spec_max_replicas: scrape kube-state-metrics"
            " with its collector horizontalpodautoscalers"
        ),
        "container_cpu_usage_seconds_total: scrape /metrics/cadvisor of the kubelets",
    ]


def test_names_are_quoted_in_queries() -> None:
    selection = SeriesSelection('sh"op', "we\\b")

    assert r'namespace="sh\"op"' in HPA_SOURCES[0].expression(selection)
    assert r'horizontalpodautoscaler="we\\b"' in HPA_SOURCES[0].expression(selection)
