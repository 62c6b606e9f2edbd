"""Objects that are created again when a field differs that their author has named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import Propagation
from ocf.component import diff
from ocf.component.apply.recreation import Cause, named_cause
from ocf.component.status.results import Drift
from ocf.concepts.recorder import Why
from ocf.errors import BuildError, ReconcileError
from ocf.objects import ObjectKey
from ocf.primitives import job, statefulset
from ocf.runtime.rbac import policy_rules
from tests.component.apply.test_recreation import JOB, base, emptied, of, template

if TYPE_CHECKING:
    from ocf.concepts.resource import ResourceBuilder
    from ocf.objects import Manifest
    from tests.component.conftest import Env

RUN: Final = "metadata.annotations.example.com/run"
ATTEMPT: Final = "metadata.labels.attempt"
NAMED: Final[dict[str, Any]] = {"recreate_when_changed": [RUN, ATTEMPT]}
SET: Final = ObjectKey("apps/v1", "StatefulSet", "web", "shop")


def a_job(run: str | None, *, attempt: str = "1", note: str = "a", image: str = "a") -> ResourceBuilder:
    manifest = base("batch/v1", "Job", {"template": template(image, policy="Never"), "backoffLimit": 1})
    annotations = {"example.com/note": note} | ({} if run is None else {"example.com/run": run})
    manifest["metadata"] |= {"annotations": annotations, "labels": {"attempt": attempt}}
    return job.Builder(manifest)


async def written(env: Env, subject: component.Component) -> list[str]:
    """Reconcile three times; return the verbs of all writes of objects, of dry runs and rejected ones, too."""
    env.cluster.requests.clear()
    for _ in range(3):
        await env.reconcile(subject)
    kinds = {"Job", "StatefulSet"}
    return [str(one.verb) for one in env.cluster.requests if one.kind in kinds and not one.verb.is_read]


async def uid(env: Env, key: ObjectKey = JOB) -> str:
    return str((await env.cluster.get(key))["metadata"]["uid"])


@pytest.mark.parametrize(
    ("old", "new", "verbs"),
    [
        pytest.param(a_job("1"), a_job("2"), ["delete", "apply"], id="an annotation"),
        pytest.param(a_job("1"), a_job("1", attempt="2"), ["delete", "apply"], id="a label"),
        pytest.param(a_job("1"), a_job(None), ["delete", "apply"], id="no longer rendered"),
        pytest.param(a_job(None), a_job("1"), ["delete", "apply"], id="not rendered before"),
        pytest.param(a_job("1"), a_job("1", note="b"), ["apply"], id="another annotation"),
        pytest.param(a_job("1"), a_job("2", note="b"), ["create", "delete", "apply"], id="another one as well"),
        pytest.param(a_job("1"), a_job("2", image="b"), ["create", "delete", "apply"], id="and an immutable field"),
        pytest.param(a_job("1"), a_job("1"), [], id="nothing"),
    ],
)
async def test_two_requests_replace_an_object_whose_named_field_differs(
    env: Env, old: ResourceBuilder, new: ResourceBuilder, verbs: list[str]
) -> None:
    """What else differs is validated by the dry run of a create before the delete."""
    await emptied(env)
    await env.reconcile(of(old, **NAMED))
    before = await uid(env)
    assert await written(env, of(new, **NAMED)) == verbs
    assert (await uid(env) != before) is ("delete" in verbs)
    assert await env.owners(JOB) == ["demo"]


async def test_the_condition_and_the_outcome_name_the_field(env: Env) -> None:
    await emptied(env)
    await env.reconcile(of(a_job("1"), **NAMED))
    result = await env.reconcile(of(a_job("2", attempt="2"), **NAMED))
    cause = f"because {RUN} and {ATTEMPT} differ"
    assert result.condition.message.endswith(f"waiting for {JOB} to be deleted, {cause}")
    assert result.outcomes[0].detail == f"to be created again, {cause}"
    assert [drift.path for drift in result.outcomes[0].reasons] == [RUN, ATTEMPT]


async def test_an_annotation_of_another_writer_is_no_difference_and_a_changed_one_of_ours_is(env: Env) -> None:
    await emptied(env)
    subject = of(a_job("1"), **NAMED)
    await env.reconcile(subject)
    await env.change(JOB, metadata={"annotations": {"example.com/run.other": "3"}})
    assert await written(env, subject) == []
    await env.change(JOB, metadata={"annotations": {"example.com/run": "3"}})
    assert await written(env, subject) == ["delete", "apply"]


async def test_a_field_of_another_manager_that_must_not_be_taken_is_no_reason_for_a_delete(env: Env) -> None:
    await emptied(env)
    protected: Any = {**NAMED, "on_conflict": component.Conflicts.FAIL}
    await env.reconcile(of(a_job("1"), **protected))
    await env.change(JOB, metadata={"annotations": {"example.com/run": "3"}})
    before = await uid(env)
    with pytest.raises(ReconcileError, match="kubectl-edit"):
        await env.reconcile(of(a_job("1"), **protected))
    assert await uid(env) == before
    await env.change(JOB, metadata={"annotations": {"example.com/run": None}})
    assert await written(env, of(a_job("2"), **protected)) == ["apply", "delete", "apply"]


async def test_an_object_is_adopted_and_not_replaced(env: Env) -> None:
    await emptied(env)
    pods = template("a", policy="Never")
    await env.create(JOB, metadata={"annotations": {"example.com/run": "0"}}, spec={"template": pods})
    foreign = await uid(env)
    assert await written(env, of(a_job("1"), **NAMED)) == ["apply"]
    assert await uid(env) == foreign


def a_set(size: int, run: str, **resources: str) -> ResourceBuilder:
    made = template("a")
    made["spec"]["containers"][0]["resources"] = {"requests": resources}
    spec = {"serviceName": "web", "replicas": size, "selector": {"matchLabels": {"app": "web"}}, "template": made}
    manifest = base("apps/v1", "StatefulSet", spec)
    manifest["metadata"]["annotations"] = {"example.com/run": run}
    return statefulset.Builder(manifest)


@pytest.mark.parametrize(
    ("new", "verbs"),
    [
        pytest.param(a_set(1, "1", cpu="1000m"), [], id="the same quantity"),
        pytest.param(a_set(2, "1", cpu="1"), ["apply"], id="another field"),
        pytest.param(a_set(1, "1", cpu="2"), ["delete", "apply"], id="another quantity"),
        pytest.param(a_set(1, "1", cpu="1", memory="1Gi"), ["delete", "apply"], id="one more"),
        pytest.param(a_set(1, "1"), ["delete", "apply"], id="none"),
    ],
)
async def test_a_field_stands_for_all_below_it(env: Env, new: ResourceBuilder, verbs: list[str]) -> None:
    """What the API server adds is no difference: https://github.com/metacontroller/metacontroller/issues/863."""
    await emptied(env, SET)
    options: Any = {"recreate_when_changed": ["spec.template"]}
    await env.reconcile(of(a_set(1, "1", cpu="1"), **options))
    assert await written(env, of(new, **options)) == verbs


async def test_a_suspension_changes_nothing_in_place_that_has_to_be_created_again(env: Env) -> None:
    """Otherwise the difference would be gone when the component is resumed."""
    await emptied(env, SET)
    await env.reconcile(of(a_set(2, "1"), **NAMED))
    before = await uid(env, SET)
    suspended = of(a_set(2, "2"), suspended=True, **NAMED)
    assert await written(env, suspended) == ["create", "delete", "apply"]
    after = await uid(env, SET)
    assert after != before
    assert (await env.cluster.get(SET))["spec"]["replicas"] == 0
    assert await written(env, of(a_set(2, "2"), **NAMED)) == ["apply"]
    assert await uid(env, SET) == after


async def test_the_diff_shows_it_and_deletes_nothing(env: Env) -> None:
    await emptied(env)
    await env.reconcile(of(a_job("1"), **NAMED))
    before = await env.cluster.get(JOB)
    (found,) = await diff([of(a_job("2"), **NAMED)], await env.owner_manifest(), env.cluster, clock=env.clock)
    assert [(each.verb, each.reasons) for each in found.objects] == [
        ("delete", (f"{RUN}: changed", f"to be created again, because {RUN} differs"))
    ]
    assert await env.cluster.get(JOB) == before


async def test_orphaned_pods_of_a_restarted_job_are_an_error(env: Env) -> None:
    await emptied(env)
    orphaning: Any = {**NAMED, "propagation": Propagation.ORPHAN}
    await env.reconcile(of(a_job("1"), **orphaning))
    before = await uid(env)
    with pytest.raises(ReconcileError, match="its selector is generated anew"):
        await env.reconcile(of(a_job("2"), **orphaning))
    assert await uid(env) == before


def test_it_needs_the_right_to_delete() -> None:
    def verbs(**options: Any) -> set[str]:
        owner = ObjectKey("v1", "ConfigMap", "owner", "shop")
        rules = policy_rules([of(a_set(1, "1"), **options)], owner=owner)
        return {rule.verb for rule in rules if rule.resource == "statefulsets"}

    assert verbs(**NAMED) == verbs() | {"delete"}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        pytest.param({"recreate_when_changed": RUN}, "recreate_when_changed must be a list of fields", id="a text"),
        pytest.param({"recreate_when_changed": ["spec..x"]}, '"spec..x" is not a field path', id="an empty key"),
        pytest.param({"recreate_when_changed": ["spec.a[0]"]}, '"spec.a[0]" is not a field path', id="a list entry"),
        pytest.param({"recreate_when_changed": ["status.x"]}, "status.x is not applied, so it never", id="the status"),
        pytest.param({"recreate_when_changed": ["metadata.name"]}, "metadata.name is not applied", id="the name"),
        pytest.param({**NAMED, "read_only": True}, "mutually exclusive with read_only", id="read only"),
    ],
)
def test_what_is_not_a_field_is_rejected(options: Any, problem: str) -> None:
    with pytest.raises(BuildError) as caught:
        of(a_job("1"), **options)
    assert problem in str(caught.value)


def changed(path: str, sent: Any = "2", stored: Any = "1", why: Why = Why.CHANGED) -> Drift:
    return Drift(path, why, sent, stored)


LABELS: Final[Manifest] = {"metadata": {"labels": {"a": "2", "a.b": "2", "c": "2"}}}
ALL: Final = "metadata.labels"
A: Final = "metadata.labels.a"
A_B: Final = "metadata.labels.a.b"


@pytest.mark.parametrize(
    ("name", "drift", "differs"),
    [
        pytest.param(A, changed(A), True, id="the field"),
        pytest.param(A, changed(A_B), False, id="another key that begins with it"),
        pytest.param(A_B, changed(A), False, id="a key that is its beginning"),
        pytest.param(A_B, changed(A_B), True, id="a key with a dot"),
        pytest.param(ALL, changed(A_B), True, id="a field below"),
        pytest.param("metadata.label", changed(A), False, id="a name that is its beginning"),
        pytest.param(A, changed(ALL, {"a": "2"}, {"a": "1"}), True, id="a part of what differs"),
        pytest.param("metadata.labels.c", changed(ALL, {"a": "2"}, {"a": "1"}), False, id="another part"),
        pytest.param(A, changed(ALL, {"a": "2"}, None, Why.NOT_OWNED), True, id="all are new"),
        pytest.param(A, changed(A, "2", "2", Why.NOT_OWNED), False, id="only not owned"),
        pytest.param(A, changed(ALL, None, None, Why.NO_LONGER_DECLARED), True, id="all are gone"),
        pytest.param("metadata.labels.x", changed(ALL, None, None, Why.NO_LONGER_DECLARED), False, id="one of none"),
        pytest.param(A, changed("", None, None, Why.NOT_OWNED), False, id="an object of others"),
    ],
)
def test_which_differences_are_those_of_a_field(name: str, drift: Drift, *, differs: bool) -> None:
    assert (named_cause([drift], [name], LABELS, LABELS) is not None) is differs


@pytest.mark.parametrize(
    ("others", "dry_run"),
    [
        pytest.param([], False, id="nothing else"),
        pytest.param([changed("metadata.labels.c")], False, id="another named field"),
        pytest.param([changed("spec.replicas")], True, id="another field"),
        pytest.param([changed(ALL, {"a": "2"}, {})], True, id="what it is part of"),
    ],
)
def test_a_dry_run_comes_first_if_anything_else_differs(others: list[Drift], *, dry_run: bool) -> None:
    names, found = [A, "metadata.labels.c"], [changed(A), *others]
    cause = named_cause(found, names, LABELS, LABELS)
    assert isinstance(cause, Cause)
    assert cause.dry_run is dry_run
    assert named_cause(found, names, LABELS, None) is None
