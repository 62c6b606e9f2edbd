"""Claims, managers, settings, subjects, refusals: what is decided before anything is read or written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from ocf.autoscaling.algorithm import HpaCondition, Settings, Status
from ocf.controllers.hpa import (
    BUILT_IN,
    OWN,
    AutoscalerPhase,
    Mode,
    TargetIndex,
    check_settings,
    last_foreign_write,
    override_settings,
    parse_autoscaler,
    reject,
)
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


class TestClaims:
    @pytest.mark.parametrize(
        ("others", "rival"),
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
    def test_who_has_a_target(self, others: list[Manifest], rival: str | None) -> None:
        claims, ours = TargetIndex(), autoscaler("web")
        for one in (ours, *others):
            claims.put(one)

        found = claims.conflicting_autoscaler(ours)

        assert (found.name if found else None) == rival

    def test_a_claim_ends_with_its_autoscaler_or_when_that_names_another_target(self) -> None:
        claims, ours, other = TargetIndex(), autoscaler("web"), autoscaler("other", of=BUILT_IN)
        for one in (ours, other):
            claims.put(one)
        claims.put(autoscaler("other", of=BUILT_IN, reference=WEB | {"name": "x"}))
        assert claims.conflicting_autoscaler(ours) is None
        claims.put(other)
        assert claims.conflicting_autoscaler(ours) is not None
        claims.drop(other)
        claims.drop(other)
        assert claims.conflicting_autoscaler(ours) is None

    def test_of_any_number_on_one_target_exactly_one_of_ours_has_it(self) -> None:
        claims, all_of_them = TargetIndex(), [autoscaler(f"web-{number}") for number in range(5)]
        for one in reversed(all_of_them):
            claims.put(one)

        assert [claims.conflicting_autoscaler(one) is None for one in all_of_them] == [True, False, False, False, False]


class TestManagers:
    @pytest.mark.parametrize(
        ("entries", "who"),
        [
            pytest.param([], None, id="nobody wrote"),
            pytest.param([("kcm", "status", "12:00")], "kcm", id="another one wrote"),
            pytest.param([("kcm", "", "12:00")], None, id="another one wrote the spec"),
            pytest.param([("us", "status", "12:00")], None, id="we wrote"),
            pytest.param([("us", "status", "12:01"), ("kcm", "status", "12:00")], None, id="we wrote last"),
            pytest.param([("us", "status", "12:00"), ("kcm", "status", "12:01")], "kcm", id="another one wrote last"),
            pytest.param([("us", "status", "12:00"), ("kcm", "status", "12:00")], None, id="in one second"),
        ],
    )
    def test_who_wrote_the_status_last(self, entries: list[tuple[str, str, str]], who: str | None) -> None:
        fields = [
            {"manager": manager, "subresource": part, "time": f"2026-01-31T{time}:00Z"}
            for manager, part, time in entries
        ]

        found = last_foreign_write({"metadata": {"managedFields": fields}}, "us")

        assert (found.manager if found else None) == who


class TestSettings:
    @pytest.mark.parametrize(
        ("said", "name", "value"),
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
    def test_an_autoscaler_may_say_something_else(self, said: dict[str, Any], name: str, value: object) -> None:
        found = override_settings(Settings(), said)

        assert getattr(found, name) == value
        assert override_settings(Settings(), None) == override_settings(Settings(), {}) == Settings()

    @pytest.mark.parametrize(
        "said",
        [
            pytest.param({"tolerance": "-1m"}, id="negative tolerance"),
            pytest.param({"tolerance": "much"}, id="no quantity"),
            pytest.param({"syncPeriodSeconds": 0}, id="no period"),
            pytest.param({"initialReadinessDelaySeconds": "soon"}, id="no number"),
            pytest.param({"scaleUpLimitFactor": "-1"}, id="negative factor"),
        ],
    )
    def test_what_is_out_of_range_is_refused(self, said: dict[str, Any]) -> None:
        with pytest.raises(ConfigError):
            override_settings(Settings(), said)

    @pytest.mark.parametrize(
        "name", ["downscale_stabilization", "cpu_initialization_period", "initial_readiness_delay"]
    )
    def test_a_controller_takes_no_period_of_nothing(self, name: str) -> None:
        nothing: dict[str, Any] = {name: timedelta(0)}
        settings = Settings(**nothing)

        with pytest.raises(ConfigError, match=f"{name} must be more than 0 s, got 0 s"):
            check_settings(settings)


class TestSubjects:
    def test_our_own_kind_is_read_as_the_built_in_one_would_be(self) -> None:
        said: dict[str, Any] = {"minReplicas": 2, "behavior": {"scaleUp": {"stabilizationWindowSeconds": 7}}}
        ours = parse_autoscaler(autoscaler(settings={"syncPeriodSeconds": 5}, **said), Settings())
        theirs = parse_autoscaler(autoscaler(of=BUILT_IN, **said), Settings())

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
    def test_what_the_server_would_refuse_of_its_own_kind_is_not_run(self, spec: dict[str, Any], problem: str) -> None:
        subject = parse_autoscaler(autoscaler(**spec), Settings())

        assert subject.autoscaler is None
        assert problem in subject.problem

    def test_each_mode_has_its_kind(self) -> None:
        assert [(mode.watched, mode.writes) for mode in Mode] == [(OWN, True), (BUILT_IN, True), (BUILT_IN, False)]


class TestRefusals:
    SUBJECT: Final = parse_autoscaler(autoscaler(), Settings())

    def test_a_refusal_says_so_in_both_conditions_and_keeps_the_rest(self) -> None:
        claims, before = (
            TargetIndex(),
            Status(3, 4, NOW, (), (HpaCondition("ScalingActive", "True", "ValidMetricFound", "x"),)),
        )
        claims.put(autoscaler("other", of=BUILT_IN))
        rival = claims.conflicting_autoscaler(autoscaler())

        planned = reject(self.SUBJECT, before, rival, now=NOW)

        assert (planned.phase, planned.replicas, planned.status_changed) == (AutoscalerPhase.REFUSED, None, True)
        assert planned.status[:4] == before[:4]
        told = {(each.type, each.status, each.reason) for each in planned.status.conditions}
        assert told == {(kind, "False", "TargetClaimed") for kind in ("AbleToScale", "ScalingActive")}
        assert [(event.type, event.reason) for event in planned.events] == [("Warning", "TargetClaimed")]

    def test_the_second_refusal_changes_nothing(self) -> None:
        first = reject(self.SUBJECT, Status(), None, now=NOW)
        second = reject(self.SUBJECT, first.status, None, now=NOW + timedelta(seconds=15))

        assert (first.phase, first.status_changed, second.status_changed) == (AutoscalerPhase.INVALID, True, False)
