"""Target index, status writers, settings, parsing, rejections: everything before the first request."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from ocf.autoscaling.algorithm import Settings, Status
from ocf.autoscaling.algorithm.status import HpaCondition
from ocf.controllers.hpa import Mode, reject
from ocf.controllers.hpa.modes import BUILT_IN, OWN
from ocf.controllers.hpa.parsed_autoscaler import parse_autoscaler
from ocf.controllers.hpa.plan import AutoscalerPhase
from ocf.controllers.hpa.settings import override_settings
from ocf.controllers.hpa.take_over import last_foreign_write
from ocf.controllers.hpa.target_index import TargetIndex
from ocf.errors import ConfigError
from ocf.objects import Manifest

NOW: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
WEB: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def autoscaler(
    name: str = "web",
    *,
    of: tuple[str, str] = OWN,
    created: str = "2026-01-31T12:00:00Z",
    reference: Manifest = WEB,
    namespace: str = "shop",
    **spec: Any,
) -> Manifest:
    metadata = {"name": name, "namespace": namespace, "creationTimestamp": created, "uid": f"uid-of-{name}"}
    return {
        "apiVersion": of[0],
        "kind": of[1],
        "metadata": metadata,
        "spec": {"scaleTargetRef": reference, "maxReplicas": 5} | spec,
    }


class TestTargetIndex:
    @pytest.mark.parametrize(
        ("others", "conflicting"),
        [
            pytest.param([], None, id="alone"),
            pytest.param([autoscaler("other", of=BUILT_IN)], "other", id="a built-in autoscaler"),
            pytest.param(
                [autoscaler("other", of=BUILT_IN, created="2027-01-01T00:00:00Z")], "other", id="a younger built-in one"
            ),
            pytest.param([autoscaler("other", created="2025-01-01T00:00:00Z")], "other", id="an older one of ours"),
            pytest.param([autoscaler("other", created="2027-01-01T00:00:00Z")], None, id="a younger one of ours"),
            pytest.param([autoscaler("a")], "a", id="of one second, the name decides"),
            pytest.param([autoscaler("z")], None, id="of one second, the name decides for us"),
            pytest.param([autoscaler("other", of=BUILT_IN, namespace="elsewhere")], None, id="another namespace"),
            pytest.param([autoscaler("other", of=BUILT_IN, reference=WEB | {"name": "x"})], None, id="another name"),
            pytest.param(
                [autoscaler("other", of=BUILT_IN, reference=WEB | {"apiVersion": "apps/v1beta1"})],
                "other",
                id="another version of the same kind",
            ),
            pytest.param(
                [autoscaler("other", of=BUILT_IN, reference=WEB | {"apiVersion": "example.com/v1"})],
                None,
                id="another group",
            ),
        ],
    )
    def test_which_autoscaler_has_a_target(self, others: list[Manifest], conflicting: str | None) -> None:
        index, ours = TargetIndex(), autoscaler("web")
        for one in (ours, *others):
            index.put(one)

        found = index.conflicting_autoscaler(ours)

        assert (found.name if found else None) == conflicting

    def test_a_target_is_free_once_its_autoscaler_is_deleted_or_names_another(self) -> None:
        index, ours, other = TargetIndex(), autoscaler("web"), autoscaler("other", of=BUILT_IN)
        for one in (ours, other):
            index.put(one)
        index.put(autoscaler("other", of=BUILT_IN, reference=WEB | {"name": "x"}))
        assert index.conflicting_autoscaler(ours) is None
        index.put(other)
        assert index.conflicting_autoscaler(ours) is not None
        index.drop(other)
        index.drop(other)
        assert index.conflicting_autoscaler(ours) is None

    def test_exactly_one_of_several_autoscalers_of_our_kind_has_a_target(self) -> None:
        index, all_of_them = TargetIndex(), [autoscaler(f"web-{number}") for number in range(5)]
        for one in reversed(all_of_them):
            index.put(one)

        assert [index.conflicting_autoscaler(one) is None for one in all_of_them] == [True, False, False, False, False]


class TestStatusWriters:
    @pytest.mark.parametrize(
        ("entries", "who"),
        [
            pytest.param([], None, id="no write"),
            pytest.param([("kcm", "status", "12:00")], "kcm", id="a foreign write"),
            pytest.param([("kcm", "", "12:00")], None, id="a foreign write of the spec"),
            pytest.param([("us", "status", "12:00")], None, id="our write"),
            pytest.param([("us", "status", "12:01"), ("kcm", "status", "12:00")], None, id="our write is last"),
            pytest.param(
                [("us", "status", "12:00"), ("kcm", "status", "12:01")], "kcm", id="the foreign write is last"
            ),
            pytest.param([("us", "status", "12:00"), ("kcm", "status", "12:00")], None, id="in one second"),
        ],
    )
    def test_the_last_foreign_status_write(self, entries: list[tuple[str, str, str]], who: str | None) -> None:
        fields = [
            {"manager": manager, "subresource": part, "time": f"2026-01-31T{time}:00Z"}
            for manager, part, time in entries
        ]

        found = last_foreign_write({"metadata": {"managedFields": fields}}, "us")

        assert (found.manager if found else None) == who


class TestSettings:
    @pytest.mark.parametrize(
        ("overrides", "name", "value"),
        [
            pytest.param({"syncPeriodSeconds": 5}, "sync_period", timedelta(seconds=5), id="sync period"),
            pytest.param({"tolerance": "50m"}, "tolerance", 0.05, id="tolerance"),
            pytest.param({"tolerance": 0}, "tolerance", 0.0, id="no tolerance"),
            pytest.param(
                {"downscaleStabilizationSeconds": 60}, "downscale_stabilization", timedelta(minutes=1), id="window"
            ),
            pytest.param(
                {"cpuInitializationPeriodSeconds": 90}, "cpu_initialization_period", timedelta(seconds=90), id="cpu"
            ),
            pytest.param(
                {"initialReadinessDelaySeconds": 10}, "initial_readiness_delay", timedelta(seconds=10), id="readiness"
            ),
            pytest.param({"scaleUpLimitFactor": "1500m"}, "scale_up_limit_factor", 1.5, id="factor"),
            pytest.param({"scaleUpLimitMinimum": 8}, "scale_up_limit_minimum", 8.0, id="minimum"),
        ],
    )
    def test_an_autoscaler_may_override_settings(self, overrides: dict[str, Any], name: str, value: object) -> None:
        found = override_settings(Settings(), overrides)

        assert getattr(found, name) == value
        assert override_settings(Settings(), None) == override_settings(Settings(), {}) == Settings()

    @pytest.mark.parametrize(
        "overrides",
        [
            pytest.param({"tolerance": "-1m"}, id="negative tolerance"),
            pytest.param({"tolerance": "much"}, id="no quantity"),
            pytest.param({"syncPeriodSeconds": 0}, id="no period"),
            pytest.param({"downscaleStabilizationSeconds": 0}, id="no window"),
            pytest.param({"initialReadinessDelaySeconds": "soon"}, id="no number"),
            pytest.param({"scaleUpLimitFactor": "-1"}, id="negative factor"),
        ],
    )
    def test_values_out_of_range_are_rejected(self, overrides: dict[str, Any]) -> None:
        with pytest.raises(ConfigError):
            override_settings(Settings(), overrides)


class TestParsing:
    def test_our_own_kind_is_parsed_like_the_built_in_one(self) -> None:
        overrides: dict[str, Any] = {"minReplicas": 2, "behavior": {"scaleUp": {"stabilizationWindowSeconds": 7}}}
        ours = parse_autoscaler(autoscaler(settings={"syncPeriodSeconds": 5}, **overrides), Settings())
        theirs = parse_autoscaler(autoscaler(of=BUILT_IN, **overrides), Settings())

        assert ours.autoscaler == theirs.autoscaler is not None
        assert (ours.settings.sync_period.seconds, theirs.settings) == (5, Settings())

    @pytest.mark.parametrize(
        ("spec", "problem"),
        [
            pytest.param({"maxReplicas": 0}, "spec.maxReplicas: Required value", id="no maximum"),
            pytest.param(
                {"metrics": [{"type": "Resource"}]},
                "must populate information for the given metric source",
                id="source",
            ),
            pytest.param(
                {"behavior": {"scaleUp": {"stabilizationWindowSeconds": 3601}}}, "less than or equal to", id="window"
            ),
            pytest.param({"settings": {"tolerance": "-1"}}, "tolerance", id="settings"),
            pytest.param({"maxReplicas": "many"}, "maxReplicas", id="type"),
        ],
    )
    def test_a_spec_that_the_api_server_would_reject_is_not_run(self, spec: dict[str, Any], problem: str) -> None:
        subject = parse_autoscaler(autoscaler(**spec), Settings())

        assert subject.autoscaler is None
        assert problem in subject.problem

    def test_each_mode_has_its_kind(self) -> None:
        assert [(mode.watched, mode.writes) for mode in Mode] == [(OWN, True), (BUILT_IN, True), (BUILT_IN, False)]


class TestRejections:
    SUBJECT: Final = parse_autoscaler(autoscaler(), Settings())

    def test_a_rejection_sets_both_conditions_and_keeps_the_rest_of_the_status(self) -> None:
        index, before = (
            TargetIndex(),
            Status(3, 4, NOW, (), (HpaCondition("ScalingActive", "True", "ValidMetricFound", "x"),)),
        )
        index.put(autoscaler("other", of=BUILT_IN))
        conflicting = index.conflicting_autoscaler(autoscaler())

        planned = reject(self.SUBJECT, before, conflicting, now=NOW)

        assert (planned.phase, planned.replicas, planned.status_changed) == (AutoscalerPhase.REFUSED, None, True)
        assert planned.status[:4] == before[:4]
        conditions = {(each.type, each.status, each.reason) for each in planned.status.conditions}
        assert conditions == {(kind, "False", "TargetClaimed") for kind in ("AbleToScale", "ScalingActive")}
        assert [(event.type, event.reason) for event in planned.events] == [("Warning", "TargetClaimed")]

    def test_a_second_rejection_changes_nothing(self) -> None:
        first = reject(self.SUBJECT, Status(), None, now=NOW)
        second = reject(self.SUBJECT, first.status, None, now=NOW + timedelta(seconds=15))

        assert (first.phase, first.status_changed, second.status_changed) == (AutoscalerPhase.INVALID, True, False)
