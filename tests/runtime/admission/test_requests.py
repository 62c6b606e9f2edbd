"""Requests as values, and what the functions of the full forms respond."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import jsonpatch
import pytest
from kubernetes.client import V1Pod
from pydantic import BaseModel, Field

from ocf.errors import ConfigError, StatusCause
from ocf.objects import Manifest, copy_json
from ocf.runtime.admission import (
    AdmissionRequest,
    AuditAnnotation,
    Deny,
    Match,
    Operation,
    Step,
    UserInfo,
    Warn,
    Webhook,
    forbidden,
    invalid,
    review,
)

POD: Final[Manifest] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "web", "image": "web:1", "later": {"unknown": 1}}]},
}
ALICE: Final = {"username": "alice", "groups": ["team"], "uid": "7", "extra": {"scopes": ["a", "b"]}}
EVICTION: Final[Manifest] = {
    "apiVersion": "policy/v1",
    "kind": "Eviction",
    "metadata": {"name": "web", "namespace": "shop"},
}
Request = AdmissionRequest[V1Pod]


def asked(operation: str = "CREATE", **changed: Any) -> Manifest:
    given = {
        "uid": "42",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": operation,
        "name": "web",
        "namespace": "shop",
        "userInfo": ALICE,
        "object": POD if operation != "DELETE" else None,
        "oldObject": POD if operation in {"UPDATE", "DELETE"} else None,
        "options": {"kind": "CreateOptions"},
    }
    return {**given, **changed}


def response(webhook: Webhook[Any], step: Step = Step.VALIDATE, **changed: Any) -> Manifest:
    question = {"request": asked(**changed)}
    before = copy_json(question)
    found: Manifest = review(webhook, step, question)["response"]
    assert question == before
    assert found.pop("uid") == "42"
    return found


def checking(*functions: Any, **options: Any) -> Webhook[V1Pod]:
    return Webhook.of(V1Pod, validating=functions, **options)


def changing(*functions: Any, **options: Any) -> Webhook[V1Pod]:
    return Webhook.of(V1Pod, mutating=functions, **options)


def patched(answer: Manifest, given: Manifest = POD) -> Manifest:
    assert answer["allowed"], answer
    if "patch" not in answer:
        return given
    changed: Manifest = jsonpatch.apply_patch(given, json.loads(base64.b64decode(answer["patch"])))
    return changed


def test_a_request_has_what_the_api_server_sent() -> None:
    raw = asked("UPDATE", dryRun=True, subResource="status")
    request = AdmissionRequest(raw, V1Pod)
    assert request.user == UserInfo("alice", ("team",), "7", {"scopes": ("a", "b")})
    assert (request.operation, request.dry_run, request.subresource) == (Operation.UPDATE, True, "status")
    assert (request.name, request.namespace, request.options) == ("web", "shop", {"kind": "CreateOptions"})
    assert request.object is raw["object"]
    assert request.old_object is raw["oldObject"]
    assert request.new.metadata is not None
    assert request.old is not None
    assert (request.new.metadata.labels, request.old.kind) == ({"app": "web"}, "Pod")


@pytest.mark.parametrize(
    ("raw", "new", "old"),
    [
        pytest.param(asked(), "Pod", None, id="create"),
        pytest.param(asked("UPDATE"), "Pod", "Pod", id="update"),
        pytest.param(asked("DELETE"), "Pod", "Pod", id="the stored object of a delete"),
        pytest.param(asked("UPDATE", subResource="ephemeralcontainers"), "Pod", "Pod", id="the whole object"),
    ],
)
def test_new_and_old_are_models(raw: Manifest, new: str, old: str | None) -> None:
    request = AdmissionRequest(raw, V1Pod)
    assert request.new.kind == new
    assert (request.old.kind if request.old is not None else None) == old


def test_a_user_without_groups_and_a_generated_name_are_empty() -> None:
    request: AdmissionRequest[Manifest] = AdmissionRequest(
        {"operation": "CREATE", "object": {"metadata": {"generateName": "web-"}}, "userInfo": {"username": "a"}}
    )
    assert (request.user, request.name, request.namespace) == (UserInfo("a"), "", "")


READS: Final[list[int]] = []


def count_read() -> int:
    READS.append(1)
    return len(READS)


class Counted(BaseModel):
    """A model that counts how often it is read."""

    reads: int = Field(default_factory=count_read)


@pytest.mark.parametrize(
    ("read", "times"),
    [
        pytest.param(lambda request: request.object["metadata"]["name"], 0, id="the object as sent"),
        pytest.param(lambda request: request.user, 0, id="the user"),
        pytest.param(lambda request: request.new, 1, id="the model"),
        pytest.param(lambda request: (request.new, request.new), 1, id="the model twice"),
    ],
)
def test_the_model_is_read_when_it_is_used(read: Callable[[Any], Any], times: int) -> None:
    def handler(request: AdmissionRequest[Counted]) -> None:
        read(request)

    READS.clear()
    webhook = Webhook("", "v1", "Pod", "pods", Counted, validating=[handler], mutating=[handler])
    assert response(webhook) == {"allowed": True}
    assert response(webhook, Step.DEFAULT) == {"allowed": True}
    assert len(READS) == 2 * times


NOT_YOURS: Final = Deny("not yours")


@pytest.mark.parametrize(
    ("found", "code", "reason", "message", "causes"),
    [
        pytest.param(NOT_YOURS, 403, "Forbidden", "not yours", [], id="one"),
        pytest.param([NOT_YOURS], 403, "Forbidden", "not yours", [], id="in a list"),
        pytest.param([Deny("slow down", 429)], 429, "TooManyRequests", "slow down", [], id="another code"),
        pytest.param([Deny("a teapot", 418)], 418, "", "a teapot", [], id="a code without a reason"),
        pytest.param(
            Deny("no", 422, [forbidden("spec.hostNetwork", "is not allowed")]),
            422,
            "Invalid",
            "no",
            [("FieldValueForbidden", "Forbidden: is not allowed", "spec.hostNetwork")],
            id="a field",
        ),
        pytest.param(
            Deny("no", causes=[StatusCause("Budget", "is used up", "")]),
            403,
            "Forbidden",
            "no",
            [("Budget", "is used up", "")],
            id="another cause",
        ),
        pytest.param(
            [Deny("first", 409), Deny("second"), Deny("first")], 409, "Conflict", "first; second", [], id="several"
        ),
        pytest.param(
            [invalid("spec.x", 1, "is odd"), NOT_YOURS],
            403,
            "Forbidden",
            'not yours; Pod "web" is invalid: spec.x: Invalid value: 1: is odd',
            [("FieldValueInvalid", "Invalid value: 1: is odd", "spec.x")],
            id="with an invalid field",
        ),
        pytest.param(
            invalid("spec.x", 1, "is odd"),
            422,
            "Invalid",
            'Pod "web" is invalid: spec.x: Invalid value: 1: is odd',
            [("FieldValueInvalid", "Invalid value: 1: is odd", "spec.x")],
            id="an invalid field alone",
        ),
    ],
)
def test_a_rejection_has_code_reason_and_causes(
    found: Any, code: int, reason: str, message: str, causes: list[tuple[str, str, str]]
) -> None:
    answer = response(checking(lambda _: found))
    status = answer["status"]
    assert not answer["allowed"]
    assert (status["code"], status["reason"], status["message"]) == (code, reason, message)
    details = status.get("details", {"causes": []})
    assert [(one["reason"], one["message"], one["field"]) for one in details["causes"]] == causes


@pytest.mark.parametrize("code", [0, 200, 302, 399, 600])
def test_a_deny_cannot_look_like_a_success(code: int) -> None:
    with pytest.raises(ConfigError, match=f"400 to 599, got {code}"):
        Deny("no", code)


@pytest.mark.parametrize(
    "key",
    ["", "example.com/tenant", "a/b/c", "-a", "a b", "x" * 64, "ä"],
    ids=["empty", "prefix", "two", "dash", "space", "long", "letter"],
)
def test_a_key_that_the_api_server_would_drop_is_an_error(key: str) -> None:
    """kube-apiserver only logs that it drops it."""
    with pytest.raises(ConfigError, match="the key of an audit annotation must be a name without a prefix"):
        AuditAnnotation(key, "a")


def noted(_: Request) -> Iterator[Any]:
    yield AuditAnnotation("tenant", "web")
    yield AuditAnnotation("tenant", "web")
    yield Warn("the image has no digest")


def test_warnings_and_audit_annotations_are_sent_with_and_without_a_rejection() -> None:
    notes = {"warnings": ["the image has no digest"], "auditAnnotations": {"tenant": "web"}}
    assert response(checking(noted)) == {"allowed": True, **notes}
    rejected = response(checking(noted, lambda _: NOT_YOURS))
    assert {key: rejected[key] for key in notes} == notes
    assert not rejected["allowed"]


def labelled(manifest: Manifest, **labels: str) -> Manifest:
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {**metadata, "labels": {**metadata["labels"], **labels}}}


def by_model(request: Request) -> V1Pod:
    assert request.new.metadata is not None
    assert request.new.metadata.labels is not None
    request.new.metadata.labels["user"] = request.user.username
    return request.new


def by_manifest(request: Request) -> Manifest:
    assert request.object is not None
    return labelled(request.object, user=request.user.username)


def counted(request: Request) -> Manifest:
    assert request.object is not None
    return labelled(request.object, count=str(len(request.object["metadata"]["labels"])))


@pytest.mark.parametrize(
    ("functions", "labels"),
    [
        pytest.param([by_model], {"app": "web", "user": "alice"}, id="a model"),
        pytest.param([by_manifest], {"app": "web", "user": "alice"}, id="a manifest"),
        pytest.param([lambda _: None], {"app": "web"}, id="nothing"),
        pytest.param([by_model, counted], {"app": "web", "user": "alice", "count": "2"}, id="in order"),
        pytest.param([counted, by_model], {"app": "web", "user": "alice", "count": "1"}, id="in the other order"),
    ],
)
@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_a_change_is_a_patch_of_what_was_sent(operation: str, functions: list[Any], labels: dict[str, str]) -> None:
    answer = response(changing(*functions), Step.DEFAULT, operation=operation)
    assert patched(answer) == {**POD, "metadata": {**POD["metadata"], "labels": labels}}


def test_defaulters_are_called_before_the_functions_of_the_request() -> None:
    def default(pod: V1Pod) -> None:
        assert pod.metadata is not None
        pod.metadata.labels = {"default": "yes"}

    webhook = Webhook.of(V1Pod, defaulters=[default], mutating=[counted])
    assert patched(response(webhook, Step.DEFAULT))["metadata"]["labels"] == {"default": "yes", "count": "1"}


def test_a_function_that_changes_objects_may_refuse() -> None:
    later: list[str] = []
    webhook = changing(by_model, lambda _: Deny("the tenant is cordoned"), lambda _: later.append("called"))
    answer = response(webhook, Step.DEFAULT)
    assert not answer["allowed"]
    assert (answer["status"]["code"], answer["status"]["message"]) == (403, "the tenant is cordoned")
    assert "patch" not in answer
    assert not later


DELETING: Final[Manifest] = {**POD, "metadata": {**POD["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}


def test_an_object_that_is_being_deleted_is_left_to_the_full_forms() -> None:
    """A rule that holds its finalizers keeps an object for ever.

    https://github.com/ome-projects/ome/issues/846, https://github.com/kubernetes/kubernetes/issues/62666
    """
    seen: list[bool] = []

    def handler(request: Request) -> None:
        seen.append(request.is_being_deleted)

    def refuse(*_: Any) -> list[Any]:
        return [forbidden("spec", "no")]

    both = Webhook.of(V1Pod, validators=[refuse], validating=[handler])
    assert response(both, operation="UPDATE", object=DELETING, oldObject=DELETING) == {"allowed": True}
    assert seen == [True]


class Strict(BaseModel):
    """A model that cannot read what was stored before it."""

    metadata: dict[str, Any]
    spec: dict[str, int]


def reads(request: AdmissionRequest[Strict]) -> None:
    assert request.new.spec is not None


@pytest.mark.parametrize("step", list(Step))
def test_an_object_that_cannot_be_read_is_rejected_with_its_fields_but_not_held(step: Step) -> None:
    webhook = Webhook("", "v1", "Pod", "pods", Strict, validating=[reads], mutating=[reads])
    rejected = response(webhook, step)
    assert (rejected["allowed"], rejected["status"]["code"]) == (False, 422)
    assert "spec.containers" in rejected["status"]["message"]
    allowed = response(webhook, step, operation="UPDATE", object=DELETING, oldObject=DELETING)
    assert allowed["allowed"]
    assert "cannot be read, so it was not checked: spec.containers" in allowed["warnings"][0]


def compares(request: AdmissionRequest[Strict]) -> None:
    assert request.old is None


READABLE: Final[Manifest] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"a": 1}}


@pytest.mark.parametrize(
    ("step", "functions"),
    [
        pytest.param(Step.VALIDATE, [compares], id="a check"),
        pytest.param(Step.DEFAULT, [compares, compares], id="a change"),
        pytest.param(Step.DEFAULT, [lambda _: {**READABLE, "b": 1}, compares], id="a change after another"),
    ],
)
def test_the_user_is_told_once_that_the_stored_object_was_not_compared(step: Step, functions: list[Any]) -> None:
    changes, checks = (functions, []) if step is Step.DEFAULT else ([], functions)
    webhook = Webhook("", "v1", "Pod", "pods", Strict, mutating=changes, validating=checks)
    answer = response(webhook, step, operation="UPDATE", object=READABLE)
    assert answer["allowed"]
    (warning,) = answer["warnings"]
    assert warning.startswith("the stored object cannot be read, so its update rules were not checked: spec.")


@pytest.mark.parametrize(
    ("subresource", "changed"),
    [
        pytest.param("ephemeralcontainers", {"operation": "UPDATE"}, id="ephemeral containers"),
        pytest.param("status", {"operation": "UPDATE"}, id="status"),
        pytest.param(
            "eviction",
            {"kind": {"group": "policy", "version": "v1", "kind": "Eviction"}, "object": EVICTION},
            id="evict",
        ),
        pytest.param(
            "exec",
            {
                "operation": "CONNECT",
                "kind": {"group": "", "version": "v1", "kind": "PodExecOptions"},
                "object": {"kind": "PodExecOptions", "apiVersion": "v1", "command": ["sh"]},
            },
            id="exec",
        ),
        pytest.param("scale", {"kind": {"group": "autoscaling", "version": "v1", "kind": "Scale"}}, id="scale"),
    ],
)
@pytest.mark.parametrize("subresources", [["", "NAMED"], ["*"]], ids=["named", "all"])
def test_subresources_that_the_match_names_reach_the_function(
    subresource: str, changed: Manifest, subresources: list[str]
) -> None:
    """Who guards images has to see ephemeral containers.

    https://github.com/kubernetes/kubernetes/issues/92557, https://github.com/kyverno/kyverno/issues/2821,
    https://github.com/strimzi/drain-cleaner/issues/40
    """

    def handler(request: Request) -> Deny:
        return Deny(f"{request.subresource} {(request.object or {}).get('kind')} of {request.name}")

    names = [subresource if one == "NAMED" else one for one in subresources]
    match = Match(operations=list(Operation), subresources=names)
    answer = response(checking(handler, match=match), subResource=subresource, **changed)
    assert answer["status"]["message"] == f"{subresource} {changed.get('object', POD)['kind']} of web"
    other = response(checking(handler), subResource=subresource, **changed)
    assert (other["status"]["code"], other["status"]["reason"]) == (400, "BadRequest")


def test_the_model_does_not_fit_an_object_of_another_kind() -> None:
    match = Match(operations=[Operation.CREATE], subresources=["eviction"])
    kind = {"group": "policy", "version": "v1", "kind": "Eviction"}
    webhook = checking(lambda request: Deny(str(request.new)), match=match)
    status = response(webhook, subResource="eviction", kind=kind, object=EVICTION)["status"]
    assert status["code"] == 500
    assert status["message"].endswith(
        "the object of pods/eviction is Eviction of policy/v1, which V1Pod does not describe: read `object` in place "
        "of `new` and `old`"
    )
    plain: Webhook[Manifest] = Webhook(
        "", "v1", "Pod", "pods", validating=[lambda request: Deny(request.new["kind"])], match=match
    )
    assert response(plain, subResource="eviction", kind=kind, object=EVICTION)["status"]["message"] == "Eviction"


async def later(_: Request) -> None:
    """Return what no plain function may return."""


def postponed(request: Request) -> Any:
    return later(request)


@pytest.mark.parametrize(
    ("step", "function", "problem"),
    [
        pytest.param(Step.VALIDATE, lambda _: 1, "Warn or AuditAnnotation, got int", id="a number"),
        pytest.param(Step.VALIDATE, lambda _: [1], "Warn or AuditAnnotation, got int", id="a list of numbers"),
        pytest.param(Step.VALIDATE, lambda _: "no", "AuditAnnotation, got str", id="a text"),
        pytest.param(Step.VALIDATE, postponed, "returned an awaitable: make it a corou", id="an awaitable"),
        pytest.param(
            Step.VALIDATE,
            lambda _: [AuditAnnotation("a", "1"), AuditAnnotation("a", "2")],
            'gives a second value to the audit annotation "a"',
            id="two values of an annotation",
        ),
        pytest.param(Step.DEFAULT, lambda _: 1, "must return V1Pod, a manifest, Deny or None, got int", id="a change"),
        pytest.param(Step.DEFAULT, lambda one: one.object, "`request.object` itself", id="the object as sent"),
        pytest.param(Step.DEFAULT, lambda _: [NOT_YOURS], "Deny or None, got list", id="several findings"),
        pytest.param(Step.DEFAULT, postponed, "returned an awaitable: make it a corou", id="a change later"),
    ],
)
def test_another_result_is_named(step: Step, function: Any, problem: str) -> None:
    webhook = changing(function) if step is Step.DEFAULT else checking(function)
    status = response(webhook, step)["status"]
    assert status["code"] == 500
    assert problem in status["message"]


def test_a_delete_has_nothing_to_change() -> None:
    match = Match(operations=[Operation.DELETE])
    status = response(changing(lambda one: one.new, match=match), Step.DEFAULT, operation="DELETE")["status"]
    assert "returned an object for a DELETE, which has none to change" in status["message"]
    allowed = changing(lambda _: NOT_YOURS, match=match)
    assert response(allowed, Step.DEFAULT, operation="DELETE")["status"]["code"] == 403


def test_a_function_that_is_awaited_needs_no_server() -> None:
    async def check(request: Request) -> Deny | None:
        return Deny("no") if request.user.username == "alice" else None

    assert asyncio.run(check(AdmissionRequest(asked(), V1Pod))) == Deny("no")


def _inside(request: Request) -> Manifest:
    """Change a shallow copy, of which the parts are those of the request."""
    assert request.object is not None
    pod = dict(request.object)
    pod["spec"]["hostNetwork"] = False
    return pod


def _forgotten(request: Request) -> None:
    assert request.object is not None
    request.object["spec"]["hostNetwork"] = False


def test_without_an_object_nothing_is_changed() -> None:
    """The object of a request must not be changed, and None is no change, whatever happened to it."""
    webhook = Webhook.of(V1Pod, mutating=[_forgotten])
    assert "patch" not in review(webhook, Step.DEFAULT, {"request": asked(object=copy_json(POD))})["response"]


def test_a_change_inside_of_a_shallow_copy_is_a_change() -> None:
    webhook = Webhook.of(V1Pod, mutating=[_inside])
    answer = review(webhook, Step.DEFAULT, {"request": asked(object=copy_json(POD))})["response"]
    assert json.loads(base64.b64decode(answer["patch"])) == [{"op": "add", "path": "/spec/hostNetwork", "value": False}]


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        pytest.param({}, "must return the whole object with its kind and metadata", id="nothing"),
        pytest.param({"spec": {}}, "must return the whole object with its kind and metadata", id="a part"),
        pytest.param({**POD, "kind": "Job"}, "must return the whole object with its kind", id="another kind"),
        pytest.param({**POD, "spec": {"x": float("nan")}}, "has values that JSON does not have", id="no number"),
        pytest.param({**POD, "spec": {1, 2}}, "has values that JSON does not have", id="a set"),
    ],
)
def test_an_object_that_no_api_server_can_read_is_a_failure_of_the_function(made: Manifest, problem: str) -> None:
    def changes(_: Request) -> Manifest:
        return made

    answer = response(Webhook.of(V1Pod, mutating=[changes]), Step.DEFAULT)
    assert (answer["allowed"], answer["status"]["code"]) == (False, 500)
    assert problem in answer["status"]["message"]
