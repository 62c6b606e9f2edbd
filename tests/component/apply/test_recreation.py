"""Changes of fields that cannot be changed: an error that says what to do, or a new object if the author says so."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import DeleteOptions, Propagation
from ocf.component import Result, diff
from ocf.component.apply.recreation import immutable_fields
from ocf.component.apply.rejection import immutable_problem
from ocf.errors import ApiError, BuildError, InvalidError, NotFoundError, ReconcileError, StatusCause
from ocf.objects import ObjectKey
from ocf.primitives import clusterrolebinding, job, pod, pvc, replicaset, rolebinding, statefulset
from ocf.runtime.rbac import policy_rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.concepts import Resource
    from ocf.concepts.resource import ResourceBuilder
    from ocf.objects import Manifest
    from tests.component.conftest import Env

RBAC: Final = "rbac.authorization.k8s.io"
IN_PLACE = "cannot be changed in the existing object"
REMEDY = (
    "keep the value, give the resource another name, or register it with "
    "recreate_on_immutable_change, which deletes the object with its dependents and its data, and creates it again"
)


def base(api_version: str, kind: str, spec: Any) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web", "namespace": "shop"}, "spec": spec}


def template(image: str, app: str = "web", policy: str = "Always") -> Any:
    spec = {
        "restartPolicy": policy,
        "containers": [{"name": "web", "image": image, "env": [{"name": "A", "value": image}]}],
    }
    return {"metadata": {"labels": {"app": app}}, "spec": spec}


def a_job(version: str) -> ResourceBuilder:
    return job.Builder(base("batch/v1", "Job", {"template": template(version, policy="Never")}))


def a_pod(version: str) -> ResourceBuilder:
    return pod.Builder(base("v1", "Pod", template(version)["spec"]))


def a_replica_set(version: str) -> ResourceBuilder:
    labels = {"matchLabels": {"app": version}}
    return replicaset.Builder(base("apps/v1", "ReplicaSet", {"selector": labels, "template": template("a", version)}))


def a_stateful_set(version: str) -> ResourceBuilder:
    spec = {"serviceName": version, "selector": {"matchLabels": {"app": "web"}}, "template": template("a")}
    return statefulset.Builder(base("apps/v1", "StatefulSet", spec))


def a_binding(version: str) -> ResourceBuilder:
    reference = {"apiGroup": RBAC, "kind": "Role", "name": version}
    manifest = base(f"{RBAC}/v1", "RoleBinding", None)
    return rolebinding.Builder({**without_spec(manifest), "roleRef": reference})


def a_cluster_binding(version: str) -> ResourceBuilder:
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": version}
    manifest = base(f"{RBAC}/v1", "ClusterRoleBinding", None)
    return clusterrolebinding.Builder({**without_spec(manifest), "metadata": {"name": "web"}, "roleRef": reference})


def a_claim(version: str) -> ResourceBuilder:
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": version}
    return pvc.Builder(base("v1", "PersistentVolumeClaim", {**spec, "resources": {"requests": {"storage": "1Gi"}}}))


def without_spec(manifest: Manifest) -> Manifest:
    return {name: value for name, value in manifest.items() if name != "spec"}


KINDS = [
    pytest.param(a_job, "spec.template", "", "spec.template.", id="template of a Job"),
    pytest.param(
        a_pod,
        "spec",
        "pod updates may not change fields other than `spec.containers[*].image`,",
        "spec.",
        id="spec of a Pod",
    ),
    pytest.param(a_replica_set, "spec.selector", "", "", id="selector of a ReplicaSet"),
    pytest.param(
        a_stateful_set,
        "spec",
        "updates to statefulset spec for fields other than 'replicas', ",
        "spec.serviceName",
        id="spec of a StatefulSet",
    ),
    pytest.param(a_binding, "roleRef", "", "", id="role of a RoleBinding"),
]
# The API server keeps these until a controller has removed their finalizer, or they have no namespace.
KEPT = [
    pytest.param(a_cluster_binding, "roleRef", "", "", id="role of a ClusterRoleBinding"),
    pytest.param(
        a_claim, "spec", "spec is immutable after creation except ", "spec.storageClassName", id="spec of a claim"
    ),
]


def of(resource: Resource | ResourceBuilder, *, suspended: bool = False, **options: Any) -> component.Component:
    """Return a component of one resource."""
    builder = component.Builder("web", condition_type="WebReady").with_resource(resource, **options)
    return builder.suspend(suspended).build()


def recreated(resource: Resource | ResourceBuilder, **options: Any) -> component.Component:
    return of(resource, recreate_on_immutable_change=True, **options)


JOB: Final = ObjectKey("batch/v1", "Job", "web", "shop")


async def emptied(env: Env, key: ObjectKey = JOB) -> None:
    """Delete the object that a test before may have left."""
    with suppress(NotFoundError):
        await env.change(key, metadata={"finalizers": None})
        await env.cluster.delete(key, DeleteOptions(propagation=Propagation.BACKGROUND))


@pytest.mark.parametrize(("make", "field", "allowed", "changed"), [*KINDS, *KEPT])
async def test_a_change_is_an_error_that_says_what_to_do(
    env: Env, make: Callable[[str], ResourceBuilder], field: str, allowed: str, changed: str
) -> None:
    """With the server's sentence about what may change, and the parts of the rejected field that the apply changes.

    The server names only `spec`: https://github.com/dragonflydb/dragonfly-operator/issues/555,
    https://github.com/datainfrahq/druid-operator/issues/230.
    """
    resource = make("a").build()
    await emptied(env, resource.key)
    await env.reconcile(of(resource))
    before = await env.cluster.get(resource.key)
    with pytest.raises(ReconcileError) as caught:
        await env.reconcile(of(make("b")))
    problem = caught.value.problem
    start = f"failed to apply resource {resource.identity}: {field} {IN_PLACE}"
    if changed:
        assert problem.startswith(f"{start} ({allowed}")
        assert f"this apply changes {changed}" in problem
        assert problem.endswith(f"): {REMEDY}")
    else:
        assert problem == f"{start}: {REMEDY}"
    assert "\n" not in problem
    assert await env.cluster.get(resource.key) == before


@pytest.mark.parametrize("make", [each.values[0] for each in KINDS])
async def test_an_author_can_have_the_object_created_again(env: Env, make: Callable[[str], ResourceBuilder]) -> None:
    resource = make("a").build()
    await emptied(env, resource.key)
    await env.reconcile(recreated(resource))
    uid = (await env.cluster.get(resource.key))["metadata"]["uid"]

    deleted = await env.reconcile(recreated(make("b")))
    waiting = f"waiting for {resource.identity} to be deleted, because a changed field is immutable"
    assert (deleted.writes, deleted.condition.reason) == (1, "Blocked")
    assert waiting in deleted.condition.message
    assert [(await env.reconcile(recreated(make("b")))).writes for _ in range(3)] == [1, 0, 0]
    assert (await env.cluster.get(resource.key))["metadata"]["uid"] != uid


async def test_an_object_that_a_finalizer_holds_is_waited_for_without_a_write(env: Env) -> None:
    await emptied(env)
    await env.reconcile(recreated(a_job("a")))
    await env.change(JOB, metadata={"finalizers": ["example.com/hold"]})

    assert (await env.reconcile(recreated(a_job("b")))).writes == 1
    held = await env.reconcile(recreated(a_job("b")))
    assert (held.writes, held.condition.reason) == (0, "Blocked")
    assert held.requeue_after is not None

    await env.change(JOB, metadata={"finalizers": None})
    assert (await env.reconcile(recreated(a_job("b")))).writes == 1
    assert (await env.cluster.get(JOB))["spec"]["template"]["spec"]["containers"][0]["image"] == "b"


async def test_nothing_is_deleted_that_the_server_would_not_create_again(env: Env) -> None:
    """The live object has values that a new one would lack: here, a number of completions, which is required."""
    await emptied(env)
    await env.reconcile(recreated(a_job("a")))
    wrong = {"template": template("b", policy="Never"), "completionMode": "Indexed", "parallelism": 2}
    with pytest.raises(ReconcileError, match="completions"):
        await env.reconcile(recreated(job.Builder(base("batch/v1", "Job", wrong))))
    assert await env.exists(JOB)


@pytest.mark.promise("recreate-war")
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"recreate_on_immutable_change": True}, id="an immutable field"),
        pytest.param({"recreate_when_changed": ["spec.template"]}, id="a named field"),
    ],
)
async def test_two_processes_that_want_different_objects_do_not_recreate_them_for_ever(env: Env, options: Any) -> None:
    """Such as two versions of an operator during its own rollout; each loses three objects, and then waits."""
    await emptied(env)
    old, new = env.process(), env.process()
    subjects = ((old, of(a_job("a"), **options)), (new, of(a_job("b"), **options)))
    for _ in range(20):
        for process, subject in subjects:
            await process.reconcile(subject)
    deletes = [sum(request.verb == "delete" for request in process.cluster.requests) for process in (old, new)]
    assert all(2 <= number <= 4 for number in deletes), deletes

    results = [(await process.reconcile(subject))[-1] for process, subject in subjects]
    waiting = [one for one in results if isinstance(one, Result) and one.condition.reason == "Blocked"]
    assert waiting
    for one in waiting:
        assert "is replaced repeatedly by another client, and is created again later" in one.condition.message
        assert one.requeue_after is not None
    env.clock.advance(timedelta(minutes=2))
    for process, subject in subjects:
        await process.reconcile(subject)
    after = [sum(request.verb == "delete" for request in process.cluster.requests) for process in (old, new)]
    assert sum(after) == sum(deletes) + 1


async def test_an_author_who_changes_it_again_and_again_waits_for_nothing(env: Env) -> None:
    await emptied(env)
    for version in "abcdef":
        await env.reconcile(recreated(a_job(version)))
        await env.reconcile(recreated(a_job(version)))
        assert (await env.cluster.get(JOB))["spec"]["template"]["spec"]["containers"][0]["image"] == version


async def test_nothing_is_deleted_that_is_not_ours(env: Env) -> None:
    await emptied(env)
    await env.create(JOB, spec={"template": template("a", policy="Never")})
    with pytest.raises(ReconcileError, match="is not deleted to be created again: not ours"):
        await env.reconcile(recreated(a_job("b")))
    assert await env.exists(JOB)


async def test_a_suspension_deletes_a_changed_job_and_does_not_create_it_again(env: Env) -> None:
    await emptied(env)
    await env.reconcile(recreated(a_job("a")))
    suspended = recreated(a_job("b"), suspended=True)
    assert [str((await env.reconcile(suspended)).condition.reason) for _ in range(2)] == ["Suspending", "Suspended"]
    assert not await env.exists(JOB)


async def test_the_diff_shows_the_delete(env: Env) -> None:
    await emptied(env)
    await env.reconcile(of(a_job("a")))
    (found,) = await diff([recreated(a_job("b"))], await env.owner_manifest(), env.cluster, clock=env.clock)
    assert [(each.verb, each.resource) for each in found.objects] == [("delete", "batch/v1/Job/shop/web")]
    assert found.result is not None
    assert found.result.condition.reason == "Blocked"


def test_it_needs_the_right_to_delete() -> None:
    def verbs(built: component.Component) -> set[str]:
        return {
            rule.verb
            for rule in policy_rules([built], owner=ObjectKey("v1", "ConfigMap", "owner", "shop"))
            if rule.resource == "replicasets"
        }

    assert verbs(recreated(a_replica_set("a"))) == verbs(of(a_replica_set("a"))) | {"delete"}


def test_a_read_only_object_is_never_deleted() -> None:
    with pytest.raises(BuildError, match="recreate_on_immutable_change is mutually exclusive with read_only"):
        recreated(a_job("a"), read_only=True)


IMMUTABLE = StatusCause("FieldValueInvalid", 'Invalid value: "b": field is immutable', "spec.selector")
OTHER = StatusCause("FieldValueInvalid", "Invalid value: -1: must be greater than or equal to 0", "spec.replicas")


@pytest.mark.parametrize(
    ("error", "fields"),
    [
        pytest.param(InvalidError("invalid", causes=[IMMUTABLE]), ("spec.selector",), id="immutable"),
        pytest.param(InvalidError("invalid", causes=[IMMUTABLE, IMMUTABLE]), ("spec.selector",), id="twice"),
        pytest.param(InvalidError("invalid", causes=[IMMUTABLE, OTHER]), (), id="and another problem"),
        pytest.param(InvalidError("invalid", causes=[OTHER]), (), id="another problem"),
        pytest.param(InvalidError("invalid"), (), id="no causes"),
        pytest.param(ApiError("conflict", causes=[IMMUTABLE]), (), id="another error"),
    ],
)
def test_only_a_change_of_immutable_fields_and_nothing_else_counts(error: ApiError, fields: tuple[str, ...]) -> None:
    """Another problem has to be fixed first: the API server would reject the new object as well."""
    assert immutable_fields(error) == fields


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Invalid value: {}: field is immutable", id="most fields"),
        pytest.param("Invalid value: {}: cannot change roleRef", id="role of a binding"),
        pytest.param("Forbidden: pod updates may not change fields other than `spec.tolerations`\n{}", id="pod"),
        pytest.param("Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden", id="set"),
        pytest.param("Forbidden: spec is immutable after creation except resources.requests", id="claim"),
        pytest.param("Forbidden: spec.persistentvolumesource is immutable after creation", id="source of a volume"),
        pytest.param('Invalid value: "None": may not change once set', id="address of a service"),
        pytest.param("Forbidden: field is immutable when `immutable` is set", id="immutable ConfigMap"),
    ],
)
def test_texts_of_the_api_server(text: str) -> None:
    assert immutable_fields(InvalidError("invalid", causes=[StatusCause("x", text, "spec")])) == ("spec",)


def test_the_text_has_the_parts_that_are_rejected_and_no_value() -> None:
    """A claim is rejected with the difference of the values, which may be large, on further lines."""
    difference = "Forbidden: spec is immutable after creation except resources.requests\n  core.Spec{ 'old' }"
    cause = StatusCause("FieldValueForbidden", difference, "spec")
    changed = ["metadata.labels.app", "spec.a", "specs.b", *(f"spec.c{at}" for at in range(6))]
    error = InvalidError("invalid", causes=[cause])
    listed = "spec.a, spec.c0, spec.c1, spec.c2, spec.c3 and 2 more"
    shown = f"spec is immutable after creation except resources.requests; this apply changes {listed}"
    assert immutable_problem(error, changed) == f"spec {IN_PLACE} ({shown}): {REMEDY}"
    withheld = immutable_problem(error, changed, quotes=False)
    assert withheld == f"spec {IN_PLACE} (this apply changes {listed}): {REMEDY}"
    assert immutable_problem(InvalidError("invalid", causes=[IMMUTABLE]), []) == f"spec.selector {IN_PLACE}: {REMEDY}"
