"""Suspension, guards, data and observation of an HPA; the engine gives the same to every kind."""

from typing import Any

import pytest
from kubernetes.client import V2HorizontalPodAutoscaler

from ocf.concepts import (
    ApplyOperation,
    Data,
    GuardStatus,
    OperationalStatus,
    StatusReport,
    SuspensionStatus,
    data_scope,
)
from ocf.concepts.resource import DataRead
from ocf.errors import HandlerError, MutationError
from ocf.objects import Manifest, write_model
from ocf.primitives import hpa


class TestSuspension:
    def test_deletes_by_default(self, hpa_base: Manifest) -> None:
        assert hpa.Builder(hpa_base).build().delete_on_suspend() is True

    def test_the_decision_can_be_replaced_and_cleared(self, hpa_base: Manifest) -> None:
        kept = hpa.Builder(hpa_base).with_custom_suspend_deletion_decision(lambda base: base.spec.max_replicas > 10)
        assert kept.build().delete_on_suspend() is False
        assert hpa.Builder(hpa_base).with_custom_suspend_deletion_decision(None).build().delete_on_suspend() is False

    def test_the_default_edit_changes_nothing(self, hpa_base: Manifest) -> None:
        assert hpa.Builder(hpa_base).build().render(suspended=True) == hpa_base

    @pytest.mark.parametrize("deletes", [True, False])
    def test_is_suspended_at_once_whatever_the_decision(self, hpa_base: Manifest, *, deletes: bool) -> None:
        resource = hpa.Builder(hpa_base).with_custom_suspend_deletion_decision(lambda _base: deletes).build()
        assert resource.suspension_status(hpa_base) == StatusReport(
            SuspensionStatus.SUSPENDED, "HorizontalPodAutoscaler suspended to prevent scaling interference"
        )

    def test_the_edit_runs_once_after_all_mutations(self, hpa_base: Manifest) -> None:
        log: list[str] = []

        def mutate(m: hpa.Mutator) -> None:
            m.edit_hpa_spec(lambda spec: spec.set_max_replicas(5))
            m.edit_hpa_spec(lambda _spec: log.append("mutation"))

        def suspend(m: hpa.Mutator) -> None:
            m.edit_hpa_spec(lambda spec: spec.set_max_replicas(1))
            m.edit_hpa_spec(lambda _spec: log.append("suspension"))

        builder = hpa.Builder(hpa_base).with_mutation(hpa.Mutation("m", mutate))
        resource = builder.with_custom_suspend_mutation(suspend).build()
        assert resource.render(suspended=True)["spec"]["maxReplicas"] == 1
        assert log == ["mutation", "suspension"]

    def test_only_the_render_that_asks_for_it_is_suspended(self, hpa_base: Manifest) -> None:
        resource = (
            hpa.Builder(hpa_base)
            .with_custom_suspend_mutation(lambda m: m.edit_hpa_spec(lambda spec: spec.set_max_replicas(1)))
            .build()
        )
        counts = [resource.render(suspended=suspended)["spec"]["maxReplicas"] for suspended in (False, True, False)]
        assert counts == [10, 1, 10]

    def test_an_edit_that_fails_is_named(self, hpa_base: Manifest) -> None:
        def broken(m: hpa.Mutator) -> None:
            m.edit_hpa_spec(lambda _spec: 1 / 0)

        resource = hpa.Builder(hpa_base).with_custom_suspend_mutation(broken).build()
        with pytest.raises(MutationError, match=r"failed to apply suspension .*edit_hpa_spec: ZeroDivisionError"):
            resource.render(suspended=True)

    def test_fields_left_to_others_are_dropped_unless_the_suspension_sets_them(self, hpa_base: Manifest) -> None:
        ignore_fields = [("spec", "minReplicas")]
        resource = (
            hpa.Builder(hpa_base)
            .with_custom_suspend_mutation(lambda m: m.edit_hpa_spec(lambda spec: spec.set_min_replicas(0)))
            .build()
        )
        assert "minReplicas" not in resource.render(ignore_fields=ignore_fields)["spec"]
        assert resource.render(ignore_fields=ignore_fields, suspended=True)["spec"]["minReplicas"] == 0

    def test_a_cleared_handler_is_an_error_when_it_is_asked(self, hpa_base: Manifest) -> None:
        builder = hpa.Builder(hpa_base).with_custom_suspend_mutation(None).with_custom_suspend_status(None)
        resource = builder.with_custom_grace_status(None).build()
        with pytest.raises(HandlerError, match="suspend mutation handler is not configured"):
            resource.render(suspended=True)
        with pytest.raises(HandlerError, match="suspend status handler is not configured"):
            resource.suspension_status(hpa_base)
        with pytest.raises(HandlerError, match="grace status handler is not configured"):
            resource.grace_status(hpa_base)


class TestGuard:
    def test_without_one_nothing_blocks(self, hpa_base: Manifest) -> None:
        assert hpa.Builder(hpa_base).build().guard_status() == StatusReport(GuardStatus.UNBLOCKED)

    def test_its_answer_is_passed_on_and_clearing_it_unblocks(self, hpa_base: Manifest) -> None:
        blocked = StatusReport(GuardStatus.BLOCKED, "waiting for the license")
        builder = hpa.Builder(hpa_base).with_guard(lambda _base: blocked)
        assert builder.build().guard_status() == blocked
        assert builder.with_guard(None).build().guard_status().status is GuardStatus.UNBLOCKED

    def test_it_gets_a_copy_of_the_baseline(self, hpa_base: Manifest) -> None:
        def meddling(base: V2HorizontalPodAutoscaler) -> StatusReport[GuardStatus]:
            base.spec.max_replicas = 99
            return StatusReport(GuardStatus.UNBLOCKED)

        resource = hpa.Builder(hpa_base).with_guard(meddling).build()
        resource.guard_status()
        assert write_model(resource.baseline()) == hpa_base

    @pytest.mark.parametrize(
        ("answer", "problem"),
        [
            pytest.param(None, "must return a StatusReport, got NoneType", id="nothing"),
            pytest.param(StatusReport(SuspensionStatus.PENDING), 'returned "PendingSuspension"', id="another word"),
        ],
    )
    def test_a_status_outside_its_vocabulary_is_rejected(self, hpa_base: Manifest, answer: Any, problem: str) -> None:
        resource = hpa.Builder(hpa_base).with_guard(lambda _base: answer).build()
        with pytest.raises(HandlerError, match=problem):
            resource.guard_status()


class TestData:
    def test_an_unset_cell_blocks_before_the_guard_is_asked(self, hpa_base: Manifest) -> None:
        host, port = Data[str]("db-host"), Data[int]("db-port")
        asked: list[str] = []

        def guard(_base: V2HorizontalPodAutoscaler) -> StatusReport[GuardStatus]:
            asked.append("guard")
            return StatusReport(GuardStatus.UNBLOCKED)

        resource = hpa.Builder(hpa_base).with_guard(guard).with_data_guard(host, port).build()
        assert resource.guard_status() == StatusReport(GuardStatus.BLOCKED, 'waiting for data "db-host", "db-port"')
        with host.seeded("db"):
            assert resource.guard_status().reason == 'waiting for data "db-port"'
            assert asked == []
            with port.seeded(0):
                assert resource.guard_status().status is GuardStatus.UNBLOCKED
        assert asked == ["guard"]

    def test_an_empty_value_counts_as_set(self, hpa_base: Manifest) -> None:
        cell = Data[str]("x")
        with cell.seeded(""):
            assert hpa.Builder(hpa_base).with_data_guard(cell).build().guard_status().status is GuardStatus.UNBLOCKED

    def test_an_optional_cell_never_blocks(self, hpa_base: Manifest) -> None:
        resource = hpa.Builder(hpa_base).with_optional_data(Data[str]("x")).build()
        assert resource.guard_status().status is GuardStatus.UNBLOCKED

    def test_the_topology_lists_cells_in_order_of_declaration(self, hpa_base: Manifest) -> None:
        host, port, team = Data[str]("host"), Data[int]("port"), Data[str]("team")
        builder = hpa.Builder(hpa_base).with_data_guard(host).with_optional_data(port)
        builder.extract_into(team, lambda _live: "a").extract_into(port, lambda _live: 1)
        resource = builder.extract_into(team, lambda _live: "b").build()
        assert resource.produced_data == (team, port)
        assert resource.consumed_data == (DataRead(host), DataRead(port, optional=True))

    def test_extraction_sees_the_live_object_and_stores_what_it_returns(self, hpa_base: Manifest) -> None:
        count = Data[int]("count")

        def current(live: V2HorizontalPodAutoscaler) -> int:
            assert live.status is not None
            return live.status.desired_replicas

        resource = hpa.Builder(hpa_base).extract_into(count, current).build()
        with data_scope():
            resource.extract_data({**hpa_base, "status": {"desiredReplicas": 7}})
            assert count.require() == 7
        assert not count.is_set

    def test_the_first_failure_stops_and_sets_nothing(self, hpa_base: Manifest) -> None:
        first, second = Data[int]("first"), Data[int]("second")
        builder = hpa.Builder(hpa_base).extract_into(first, lambda _live: 1 // 0).extract_into(second, lambda _live: 2)
        resource = builder.build()
        with data_scope():
            with pytest.raises(HandlerError, match='extract data "first": '):
                resource.extract_data(hpa_base)
            assert (first.is_set, second.is_set) == (False, False)


class TestObservation:
    def test_an_object_of_another_kind_is_rejected(self, hpa_base: Manifest, deployment_base: Manifest) -> None:
        cell = Data[int]("x")
        resource = hpa.Builder(hpa_base).extract_into(cell, lambda _live: 1).build()
        with data_scope():
            with pytest.raises(HandlerError, match=r"expected an object of autoscaling/v2 Hor.*, got apps/v1"):
                resource.extract_data(deployment_base)
            assert not cell.is_set

    def test_a_field_of_a_newer_server_is_passed_over(self, hpa_base: Manifest) -> None:
        resource = hpa.Builder(hpa_base).build()
        hpa_base["spec"]["brandNew"] = {"x": 1}
        assert resource.operational_status(ApplyOperation.NONE, hpa_base).status is OperationalStatus.PENDING
