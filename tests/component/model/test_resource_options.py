"""Options of resources: what they do, and which exclude each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.component import Component, Conflicts, Participation, Reason
from ocf.component.author_code import is_open
from ocf.component.model.resource_options import EffectiveOptions, Lifecycle, ResourceOptions
from ocf.component.status.results import Action
from ocf.concepts import AliveStatus, ApplyOperation, Data, GuardStatus, StatusReport
from ocf.errors import BuildError, ConfigError, ConflictError, FeatureGateError, ReconcileError
from ocf.feature import BooleanGate, VersionGate
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.primitives import deployment

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.primitives import hpa
    from tests.component.conftest import Env, StaticKind

ON, OFF = BooleanGate(True), BooleanGate(False)
SETTINGS = ObjectKey("v1", "ConfigMap", "settings", "shop")


def of(*resources: tuple[Any, dict[str, Any]]) -> Component:
    builder = component.Builder("web", condition_type="WebReady")
    for resource, options in resources:
        builder.with_resource(resource, **options)
    return builder.build()


def decided(**given: Any) -> EffectiveOptions:
    return EffectiveOptions.of(given)  # type: ignore[arg-type] # a row may hold what the types forbid


def careful(web: deployment.Resource, *others: Any, suspended: bool = False) -> Component:
    builder = component.Builder("web", condition_type="WebReady").suspend(suspended)
    builder.with_resource(web, on_conflict=Conflicts.FAIL)
    for other in others:
        builder.with_resource(other)
    return builder.build()


def reporting(base: Manifest, name: str, status: AliveStatus, reason: str = "") -> deployment.Builder:
    base = copy_json(base)
    base["metadata"]["name"] = name
    return deployment.Builder(base).with_custom_converge_status(lambda *_: StatusReport(status, reason))


def blocked(reason: str) -> Callable[[Any], StatusReport[GuardStatus]]:
    return lambda _base: StatusReport(GuardStatus.BLOCKED, reason)


class AnsweringGate:
    """A gate of the user's own."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def enabled(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class TestEffectiveOptions:
    def test_defaults(self) -> None:
        options = decided()
        assert (options.lifecycle, options.participation, options.on_conflict) == (
            Lifecycle.MANAGED,
            Participation.REQUIRED,
            Conflicts.TAKE,
        )

    @pytest.mark.parametrize(
        ("given", "lifecycle"),
        [
            pytest.param({"read_only": True}, Lifecycle.READ_ONLY, id="read only"),
            pytest.param({"read_only": False}, Lifecycle.MANAGED, id="not read only"),
            pytest.param({"delete_when": True}, Lifecycle.DELETED, id="delete"),
            pytest.param({"delete_when": False}, Lifecycle.MANAGED, id="do not delete"),
            pytest.param({"gated_by": ON}, Lifecycle.MANAGED, id="gate on"),
            pytest.param({"gated_by": OFF}, Lifecycle.DELETED, id="gate off"),
            pytest.param({"gated_by": None}, Lifecycle.MANAGED, id="no gate"),
            pytest.param({"gated_by": ON, "delete_when": True}, Lifecycle.DELETED, id="gate on, but delete"),
            pytest.param({"gated_by": OFF, "delete_when": False}, Lifecycle.DELETED, id="do not delete, but gate off"),
            pytest.param({"orphan_when": True}, Lifecycle.ORPHANED, id="orphan"),
            pytest.param({"orphan_when": False}, Lifecycle.MANAGED, id="do not orphan"),
        ],
    )
    def test_the_options_decide_the_lifecycle(self, given: dict[str, Any], lifecycle: Lifecycle) -> None:
        assert decided(**given).lifecycle is lifecycle

    def test_none_is_the_same_as_not_given(self) -> None:
        names = ResourceOptions.__annotations__
        assert decided(**dict.fromkeys(names)) == EffectiveOptions()

    def test_plain_text_is_accepted_for_an_enum(self) -> None:
        """Compared by identity, `"take"` would fail every conflict and `"Required"` would not count."""
        options = decided(participation="Auxiliary", on_conflict="fail")
        assert (options.participation, options.on_conflict) == (Participation.AUXILIARY, Conflicts.FAIL)


EXCLUSIONS = [
    pytest.param(
        {"read_only": True, "block_on_absence": True, "ignore_if_absent": True},
        "block_on_absence and ignore_if_absent are mutually exclusive",
        id="absence",
    ),
    pytest.param({"block_on_absence": True}, "block_on_absence requires read_only", id="block on absence alone"),
    pytest.param(
        {"ignore_if_absent": True},
        'ignore_if_absent requires read_only or writes="update-only"',
        id="ignore absence alone",
    ),
    *[
        pytest.param(
            {"read_only": True, "delete_when": value}, "read_only is mutually exclusive with delete_when", id=text
        )
        for value, text in ((True, "read only, deleted"), (False, "read only, not deleted"))
    ],
    *[
        pytest.param({"read_only": True, "gated_by": gate}, "read_only is mutually exclusive with gated_by", id=text)
        for gate, text in ((ON, "read only, gate on"), (OFF, "read only, gate off"))
    ],
    pytest.param(
        {"read_only": True, "block_on_foreign_controller": True},
        "block_on_foreign_controller is mutually exclusive with read_only",
        id="read only, foreign controller",
    ),
    *[
        pytest.param(
            {"orphan_when": orphan, "delete_when": delete},
            "orphan_when is mutually exclusive with delete_when",
            id=f"orphan {orphan}, delete {delete}",
        )
        for orphan in (True, False)
        for delete in (True, False)
    ],
    *[
        pytest.param(
            {"orphan_when": orphan, "gated_by": ON},
            "orphan_when is mutually exclusive with gated_by",
            id=f"orphan {orphan}",
        )
        for orphan in (True, False)
    ],
    *[
        pytest.param(
            {"orphan_when": orphan, "read_only": True},
            "orphan_when is mutually exclusive with read_only",
            id=f"orphan {orphan}, read only",
        )
        for orphan in (True, False)
    ],
]


class TestValidation:
    @pytest.mark.parametrize(("given", "problem"), EXCLUSIONS)
    def test_options_exclude_each_other_by_name_not_by_value(self, given: dict[str, Any], problem: str) -> None:
        with pytest.raises(ConfigError, match=problem):
            decided(**given)

    def test_every_problem_is_reported_and_absence_comes_first(self) -> None:
        with pytest.raises(ConfigError) as caught:
            decided(block_on_absence=True, ignore_if_absent=True)
        assert str(caught.value) == (
            "block_on_absence and ignore_if_absent are mutually exclusive; "
            "block_on_absence requires read_only; "
            'ignore_if_absent requires read_only or writes="update-only"'
        )

    @pytest.mark.parametrize(
        "given",
        [
            {"unowned": True, "block_on_foreign_controller": True},
            {"unowned": True, "participation": Participation.AUXILIARY},
            {"gated_by": ON, "delete_when": False},
            {"read_only": True, "gated_by": None, "delete_when": None},
            {"read_only": False, "delete_when": True},
        ],
        ids=str,
    )
    def test_other_options_can_be_combined(self, given: dict[str, Any]) -> None:
        decided(**given)

    @pytest.mark.parametrize(
        ("given", "problem"),
        [
            pytest.param({"read_onyl": True}, 'unknown option "read_onyl", did you mean "read_only"?', id="misspelt"),
            pytest.param({"zzz": 1}, 'unknown option "zzz"; known options: participation, ignore_fields', id="unknown"),
            pytest.param(
                {"delete_when": "false"}, "delete_when must be True or False, got 'false'", id="text instead of a bool"
            ),
            pytest.param({"read_only": 1}, "read_only must be True or False, got 1", id="a number"),
            pytest.param(
                {"participation": "Maybe"}, 'participation must be one of Required, Auxiliary, got "Maybe"', id="word"
            ),
            pytest.param({"on_conflict": "lose"}, 'on_conflict must be one of take, fail, got "lose"', id="conflict"),
            pytest.param(
                {"ignore_fields": "spec.replicas"},
                "ignore_fields must be a list of fields",
                id="text instead of a list",
            ),
        ],
    )
    def test_unknown_options_and_values_are_rejected(self, given: dict[str, Any], problem: str) -> None:
        """A misspelt `delete_when` must not be ignored, nor the text "false" taken for True."""
        with pytest.raises(ConfigError) as caught:
            decided(**given)
        assert str(caught.value).startswith(problem)

    def test_the_error_names_resource_and_component(self, web: deployment.Resource) -> None:
        builder = component.Builder("web", condition_type="WebReady").with_resource(web, ignore_if_absent=True)
        problem = 'ignore_if_absent requires read_only or writes="update-only"'
        with pytest.raises(BuildError) as caught:
            builder.build()
        assert caught.value.problems == (f'resource "apps/v1/Deployment/shop/web" in component "web": {problem}',)

    @pytest.mark.parametrize(
        ("gate", "problem"),
        [
            pytest.param(VersionGate("latest", ">= 2"), "latest", id="invalid version"),
            pytest.param(AnsweringGate(LookupError("lost")), "feature gate failed: LookupError: lost", id="raises"),
            pytest.param(AnsweringGate(None), "must return True or False, got NoneType", id="returns None"),
        ],
    )
    def test_a_gate_that_fails_is_rejected_when_building(
        self, web: deployment.Resource, gate: Any, problem: str
    ) -> None:
        builder = component.Builder("web", condition_type="WebReady").with_resource(web, gated_by=gate)
        with pytest.raises(BuildError, match=problem):
            builder.build()

    def test_the_error_of_a_gate_is_the_cause(self) -> None:
        with pytest.raises(ConfigError) as caught:
            is_open(AnsweringGate(LookupError("lost")))
        assert isinstance(caught.value, FeatureGateError)
        assert isinstance(caught.value.__cause__, LookupError)


class TestConditionalResources:
    def test_off_the_resource_is_not_built_and_its_identity_is_free(self, web: deployment.Resource) -> None:
        def make() -> deployment.Resource:
            raise AssertionError("made")

        builder = component.Builder("web", condition_type="WebReady").include_when(False, make)
        assert builder.with_resource(web).build().resource(web.identity) is web

    def test_on_it_is_registered_with_its_options(self, web: deployment.Resource) -> None:
        builder = component.Builder("web", condition_type="WebReady").include_when(True, lambda: web, delete_when=True)
        assert [entry.lifecycle for entry in builder.build().entries] == [Lifecycle.DELETED]

    def test_off_nothing_is_read_or_deleted(self) -> None:
        nothing: Any = None
        assert component.Builder("web", condition_type="WebReady").include_when(False, nothing).build().entries == ()

    def test_on_without_a_function_is_rejected(self) -> None:
        nothing: Any = None
        builder = component.Builder("web", condition_type="WebReady").include_when(True, nothing)
        with pytest.raises(BuildError, match='no build function passed to include_when in component "web"'):
            builder.build()


class TestReadOnlyResources:
    async def test_is_read_and_counts_and_is_never_written(self, env: Env, web: deployment.Resource) -> None:
        live = await env.create(env.web, spec=web.render()["spec"])
        seen: list[tuple[ApplyOperation, str]] = []

        def converge_status(operation: ApplyOperation, live: Any) -> StatusReport[AliveStatus]:
            seen.append((operation, live.metadata.uid))
            return StatusReport(AliveStatus.SCALING, "0/1")

        def crash(_mutator: deployment.Mutator) -> None:
            raise AssertionError("rendered")

        builder = deployment.Builder(web.render()).with_custom_converge_status(converge_status)
        resource = builder.with_mutation(deployment.Mutation("never", crash)).build()
        result = await env.reconcile(of((resource, {"read_only": True})))
        assert seen == [(ApplyOperation.NONE, live["metadata"]["uid"])]
        assert (result.condition.reason, result.outcomes[0].action) == (Reason.SCALING, Action.UNCHANGED)
        assert await env.cluster.get(env.web) == live

    async def test_is_not_deleted_by_a_gate_that_is_off(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        live = await env.create(SETTINGS, data={"a": "1"})
        builder = component.Builder("web", condition_type="WebReady").with_feature_gate(OFF)
        await env.reconcile(builder.with_resource(config_map().build(), read_only=True).build())
        assert await env.cluster.get(SETTINGS) == live

    async def test_absent_it_is_an_error(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        with pytest.raises(
            ReconcileError, match="failed to read resource v1/ConfigMap/shop/settings: it does not exist"
        ):
            await env.reconcile(of((config_map().build(), {"read_only": True})))
        assert (await env.condition())["reason"] == "Error"

    async def test_absent_and_ignored_it_is_skipped(
        self, env: Env, web_base: Manifest, config_map: Callable[..., StaticKind]
    ) -> None:
        def crash(_live: Any) -> str:
            raise AssertionError("extracted")

        absent = config_map().extract_into(Data[str]("a"), crash).build()
        healthy = reporting(web_base, "web", AliveStatus.HEALTHY).build()
        result = await env.reconcile(of((absent, {"read_only": True, "ignore_if_absent": True}), (healthy, {})))
        assert [outcome.action for outcome in result.outcomes] == [Action.ABSENT, Action.CREATED]
        assert result.outcomes[0].report is None
        assert result.condition.reason is Reason.HEALTHY

    async def test_absent_and_blocking_it_stops_the_loop(
        self, env: Env, web: deployment.Resource, config_map: Callable[..., StaticKind]
    ) -> None:
        subject = of((config_map().build(), {"read_only": True, "block_on_absence": True}), (web, {}))
        result = await env.reconcile(subject)
        assert (result.condition.status, result.condition.reason) == (False, Reason.BLOCKED)
        assert result.condition.message == "waiting for v1/ConfigMap/shop/settings"
        assert not await env.exists(env.web)
        await env.create(SETTINGS)
        assert (await env.reconcile(subject)).condition.reason is Reason.CREATING

    async def test_a_read_only_autoscaler_still_owns_the_replicas(
        self, env: Env, fixed_web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        await env.create(env.hpa, spec=web_hpa.render()["spec"])
        await env.reconcile(of((fixed_web, {}), (web_hpa, {"read_only": True})))
        await env.scale(7)
        assert (await env.reconcile(of((fixed_web, {}), (web_hpa, {"read_only": True})))).writes == 0
        assert await env.replicas() == 7


class TestParticipation:
    async def test_the_health_of_an_auxiliary_resource_does_not_count(self, env: Env, web_base: Manifest) -> None:
        healthy = reporting(web_base, "a", AliveStatus.HEALTHY).build()
        failing = reporting(web_base, "b", AliveStatus.FAILING, "CrashLoop").build()
        result = await env.reconcile(of((healthy, {}), (failing, {"participation": Participation.AUXILIARY})))
        assert (result.condition.status, result.condition.reason) == (True, Reason.HEALTHY)
        result = await env.reconcile(of((healthy, {"participation": Participation.AUXILIARY}), (failing, {})))
        assert (result.condition.reason, result.condition.message) == (Reason.FAILING, "Deployment b: CrashLoop")

    async def test_a_blocked_auxiliary_resource_counts(self, env: Env, web_base: Manifest) -> None:
        healthy = reporting(web_base, "a", AliveStatus.HEALTHY).build()
        waiting = reporting(web_base, "b", AliveStatus.HEALTHY).with_guard(blocked("x")).build()
        result = await env.reconcile(of((healthy, {}), (waiting, {"participation": Participation.AUXILIARY})))
        assert (result.condition.status, result.condition.reason) == (False, Reason.BLOCKED)
        assert result.condition.message == "Deployment b: x"

    async def test_an_error_of_an_auxiliary_resource_fails_the_reconcile(self, env: Env, web_base: Manifest) -> None:
        def crash(_mutator: deployment.Mutator) -> None:
            raise ValueError("boom")

        broken = deployment.Builder(web_base).with_mutation(deployment.Mutation("m", crash)).build()
        with pytest.raises(ReconcileError, match="boom"):
            await env.reconcile(of((broken, {"participation": Participation.AUXILIARY})))


class TestUnowned:
    async def test_has_no_owner_reference_and_outlives_the_owner(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        await env.reconcile(of((config_map().build(), {"unowned": True})))
        assert await env.owners(SETTINGS) == []
        await env.cluster.delete(env.owner)
        assert await env.exists(SETTINGS)

    async def test_removes_our_owner_reference_and_no_other(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        resource = config_map().build()
        await env.reconcile(of((resource, {})))
        ours = (await env.cluster.get(SETTINGS))["metadata"]["ownerReferences"]
        other = await env.other_owner() | {"controller": False}
        await env.change(SETTINGS, metadata={"ownerReferences": [*ours, other]})
        await env.reconcile(of((resource, {"unowned": True})))
        assert await env.owners(SETTINGS) == ["other"]


class TestForeignController:
    async def test_blocks_and_does_not_change_the_object(
        self, env: Env, web: deployment.Resource, config_map: Callable[..., StaticKind]
    ) -> None:
        live = await env.create(SETTINGS, metadata={"ownerReferences": [await env.other_owner()]})
        subject = of((config_map().build(), {"block_on_foreign_controller": True}), (web, {}))
        result = await env.reconcile(subject)
        assert (result.condition.status, result.condition.reason) == (False, Reason.BLOCKED)
        assert result.condition.message == "ConfigMap settings: controlled by Shop other"
        assert await env.cluster.get(SETTINGS) == live
        assert not await env.exists(env.web)
        await env.change(SETTINGS, metadata={"ownerReferences": None})
        assert (await env.reconcile(subject)).outcomes[0].action is Action.UPDATED

    async def test_the_guard_is_evaluated_first(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        await env.create(SETTINGS, metadata={"ownerReferences": [await env.other_owner()]})
        guarded = config_map().with_guard(blocked("not yet")).build()
        result = await env.reconcile(of((guarded, {"block_on_foreign_controller": True})))
        assert result.condition.message == "ConfigMap settings: not yet"

    async def test_neither_our_own_object_nor_one_without_controller_blocks(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        await env.create(SETTINGS)
        subject = of((config_map().build(), {"block_on_foreign_controller": True}))
        actions = [(await env.reconcile(subject)).outcomes[0].action for _ in range(2)]
        assert actions == [Action.UPDATED, Action.UNCHANGED]

    async def test_suspended_it_counts_as_suspended_and_is_not_changed(
        self, env: Env, web: deployment.Resource
    ) -> None:
        reference = await env.other_owner()
        live = await env.create(env.web, metadata={"ownerReferences": [reference]}, spec=web.render()["spec"])
        builder = component.Builder("web", condition_type="WebReady").suspend()
        result = await env.reconcile(builder.with_resource(web, block_on_foreign_controller=True).build())
        assert (result.condition.status, result.condition.reason) == (True, Reason.SUSPENDED)
        assert result.outcomes[0].action is Action.KEPT
        assert await env.cluster.get(env.web) == live


class TestConflicts:
    async def test_the_error_names_manager_and_field(self, env: Env, fixed_web: deployment.Resource) -> None:
        subject = of((fixed_web, {"on_conflict": Conflicts.FAIL}))
        await env.reconcile(subject)
        await env.scale(9)
        with pytest.raises(
            ReconcileError, match=r'conflict with "kube-controller-manager".*\.spec\.replicas'
        ) as caught:
            await env.reconcile(subject)
        assert isinstance(caught.value.__cause__, ConflictError)
        assert await env.replicas() == 9

    async def test_equal_values_are_not_a_conflict(self, env: Env, fixed_web: deployment.Resource) -> None:
        subject = of((fixed_web, {"on_conflict": Conflicts.FAIL}))
        await env.reconcile(subject)
        await env.scale(9)
        await env.scale(4)
        await env.reconcile(subject)
        assert (await env.reconcile(subject)).writes == 0

    async def test_suspending_still_takes_the_replicas_from_the_autoscaler(
        self, env: Env, fixed_web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        """A suspension takes this field on purpose; it belongs to the autoscaler, so it would always conflict."""
        await env.reconcile(careful(fixed_web))
        await env.reconcile(careful(fixed_web, web_hpa))
        await env.scale(5)
        await env.reconcile(careful(fixed_web, web_hpa, suspended=True))
        assert await env.replicas() == 0
        await env.reconcile(careful(fixed_web, web_hpa))
        assert await env.replicas() == 5

    async def test_suspending_takes_no_other_field(self, env: Env, web_base: Manifest, web_hpa: hpa.Resource) -> None:
        base = {**web_base, "spec": {**web_base["spec"], "minReadySeconds": 5, "replicas": 4}}
        patient = deployment.Builder(base).build()
        await env.reconcile(careful(patient))
        await env.reconcile(careful(patient, web_hpa))
        await env.scale(5)
        await env.change(env.web, spec={"minReadySeconds": 7})
        with pytest.raises(ReconcileError, match=r"\.spec\.minReadySeconds"):
            await env.reconcile(careful(patient, web_hpa, suspended=True))
        assert await env.replicas() == 5
