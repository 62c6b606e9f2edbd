"""What is answered to what is asked: pure tables."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Iterable
from typing import Any, Literal

import jsonpatch
import pytest
from pydantic import BaseModel, model_validator

from ocf.objects import Manifest, copy_json
from ocf.runtime.admission import Match, Operation, Step, Webhook, invalid, review

SECRET = "hunter2"


def shop(spec: Any, **metadata: Any) -> Manifest:
    held = {"name": "corner", **metadata}
    return {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": held, "spec": spec}


def question(new: Any, old: Any = None, operation: str = "", **more: Any) -> Manifest:
    request = {
        "uid": "42",
        "kind": {"group": "example.com", "version": "v1", "kind": "Shop"},
        "operation": operation or ("CREATE" if old is None else "UPDATE"),
        "name": "corner",
        "object": new,
        "oldObject": old,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request | more}


def asked(webhook: Webhook[Any], step: Step, *given: Any, **more: Any) -> Manifest:
    asking = question(*given, **more)
    before = copy_json(asking)
    answer = review(webhook, step, asking)
    assert asking == before
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert answer["response"]["uid"] == "42"
    response: Manifest = answer["response"]
    return response


def patch_of(response: Manifest) -> list[dict[str, Any]]:
    assert response["allowed"]
    if "patch" not in response:
        return []
    assert response["patchType"] == "JSONPatch"
    operations: list[dict[str, Any]] = json.loads(base64.b64decode(response["patch"]))
    return operations


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


@pytest.mark.parametrize(
    ("spec", "patch"),
    [
        pytest.param({}, [add("/spec/replicas", 1)], id="filled in"),
        pytest.param(
            {"replicas": None}, [{"op": "replace", "path": "/spec/replicas", "value": 1}], id="null is absent"
        ),
        pytest.param({"replicas": 3}, [], id="what is given stays"),
        pytest.param({"replicas": 0}, [], id="zero is given"),
        pytest.param(
            {"autoscaling": {"enabled": True}}, [add("/spec/autoscaling/metrics", ["cpu"])], id="below a part"
        ),
        pytest.param({"autoscaling": {"enabled": True, "metrics": ["rps"]}}, [], id="a list that is given stays"),
        pytest.param(
            {"autoscaling": {"enabled": True, "metrics": []}},
            [{"op": "replace", "path": "/spec/autoscaling/metrics", "value": ["cpu"]}],
            id="an empty list",
        ),
        pytest.param(
            {"autoscaling": {}}, [add("/spec/replicas", 1)], id="defaults of the model are not the defaulter's"
        ),
        pytest.param({"replicas": 1, "resources": {"limits": {"cpu": 1}}}, [], id="a spelling that is not the model's"),
        pytest.param({"replicas": 1, "settings": {"a": {"b": [None]}}}, [], id="nulls in what is preserved"),
        pytest.param({"replicas": 1, "new": {"x": 1}}, [], id="fields that the model does not know"),
        pytest.param(
            {"replicas": 1, "listeners": [{"name": "a", "port": 1, "new": 1}, {"name": "b", "new": 2}]},
            [add("/spec/listeners/1/port", 80)],
            id="entries with fields that the model does not know",
        ),
    ],
)
def test_the_defaults_are_the_least_change(shops: Webhook[Any], spec: Any, patch: list[Any]) -> None:
    assert patch_of(asked(shops, Step.DEFAULT, shop(spec))) == patch
    assert patch_of(asked(shops, Step.DEFAULT, shop(spec), shop({}))) == patch


@pytest.mark.parametrize("spec", [{}, {"autoscaling": {"enabled": True}}, {"listeners": [{"name": "a"}]}])
def test_defaulting_what_is_defaulted_changes_nothing(shops: Webhook[Any], spec: Any) -> None:
    given = shop(spec)
    patched = jsonpatch.apply_patch(given, patch_of(asked(shops, Step.DEFAULT, given)))
    assert patched != given
    assert patch_of(asked(shops, Step.DEFAULT, patched)) == []


@pytest.mark.parametrize(
    ("given", "what"),
    [
        pytest.param(shop({"replicas": "many"}), "of the wrong type", id="unreadable"),
        pytest.param(shop({}, deletionTimestamp="2026-01-01T00:00:00Z"), "being deleted", id="being deleted"),
    ],
)
def test_what_cannot_be_defaulted_is_left_as_it_is(shops: Webhook[Any], given: Manifest, what: str) -> None:
    assert asked(shops, Step.DEFAULT, given) == {"uid": "42", "allowed": True}, what


def test_a_part_that_only_the_model_fills_in_is_sent_with_what_was_changed_in_it() -> None:
    class Part(BaseModel):
        a: int = 1
        b: int = 2

    class Shop(BaseModel):
        part: Part = Part()

    def change(held: Shop) -> None:
        held.part.b = 3

    webhook = Webhook("example.com", "v1", "Shop", "shops", Shop, [change])
    assert patch_of(asked(webhook, Step.DEFAULT, {})) == [add("/part", {"b": 3})]


def test_defaulters_run_in_order_and_may_return_another_object() -> None:
    def first(manifest: Manifest) -> Manifest:
        return {**manifest, "spec": {"seen": "first"}}

    def second(manifest: Manifest) -> None:
        manifest["spec"]["seen"] += ", second"

    webhook: Webhook[Manifest] = Webhook("example.com", "v1", "Shop", "shops", None, [first, second])
    patch = patch_of(asked(webhook, Step.DEFAULT, shop({})))
    assert patch == [add("/spec/seen", "first, second")]


def test_all_errors_are_reported_at_once_as_by_an_api_server(shops: Webhook[Any]) -> None:
    new, old = shop({"replicas": 2, "image": "b", "autoscaling": {"enabled": True}}), shop({"image": "a"})
    response = asked(shops, Step.VALIDATE, new, old)
    causes = [
        (
            "FieldValueForbidden",
            "Forbidden: spec.replicas and spec.autoscaling.enabled are mutually exclusive",
            "spec.replicas",
        ),
        (
            "FieldValueRequired",
            "Required value: must be set when autoscaling is enabled",
            "spec.autoscaling.maxReplicas",
        ),
        ("FieldValueInvalid", 'Invalid value: "b": field is immutable', "spec.image"),
    ]
    joined = ", ".join(f"{field}: {message}" for _, message, field in causes)
    assert response == {
        "uid": "42",
        "allowed": False,
        "status": {
            "status": "Failure",
            "code": 422,
            "reason": "Invalid",
            "message": f'Shop.example.com "corner" is invalid: [{joined}]',
            "details": {
                "name": "corner",
                "group": "example.com",
                "kind": "Shop",
                "causes": [{"reason": reason, "message": text, "field": field} for reason, text, field in causes],
            },
        },
    }


@pytest.mark.parametrize(
    ("new", "old", "operation", "deletes", "allowed"),
    [
        pytest.param(shop({}), None, "CREATE", False, True, id="good"),
        pytest.param(shop({"image": "a"}), shop({"image": "a"}), "UPDATE", False, True, id="unchanged"),
        pytest.param(
            shop({"image": "b"}, deletionTimestamp="2026-01-01T00:00:00Z"),
            shop({"image": "a"}),
            "UPDATE",
            False,
            True,
            id="being deleted",
        ),
        pytest.param(None, shop({}, labels={"protected": "yes"}), "DELETE", False, True, id="deletes pass"),
        pytest.param(None, shop({}, labels={"protected": "yes"}), "DELETE", True, False, id="unless asked"),
        pytest.param(None, shop({}), "DELETE", True, True, id="a delete that may be"),
        pytest.param(shop({}), None, "CONNECT", True, True, id="no operation of ours"),
    ],
)
def test_who_is_let_pass(
    shops: Webhook[Any], new: Any, old: Any, operation: str, *, deletes: bool, allowed: bool
) -> None:
    operations = [Operation.CREATE, Operation.UPDATE, *([Operation.DELETE] if deletes else [])]
    match = Match(operations=operations)
    webhook = Webhook("example.com", "v1", "Shop", "shops", shops.model, (), shops.validators, match=match)
    assert asked(webhook, Step.VALIDATE, new, old, operation)["allowed"] is allowed


def test_warnings_do_not_refuse(shops: Webhook[Any]) -> None:
    response = asked(shops, Step.VALIDATE, shop({"replicas": 0}))
    assert response == {"uid": "42", "allowed": True, "warnings": ["no pod will run"]}


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        pytest.param(
            {"replicas": 65}, "spec.replicas", "Invalid value: 65: must be less than or equal to 64", id="a bound"
        ),
        pytest.param({"image": {"a": SECRET}}, "spec.image", 'Invalid value: "object": must be', id="a type"),
        pytest.param(
            {"resources": {"limits": []}}, "spec.resources.limits", 'Invalid value: "array"', id="a list for a map"
        ),
        pytest.param(
            {"listeners": [{}, {"name": 1}]}, "spec.listeners[1].name", "Invalid value: 1: must be", id="deep"
        ),
        pytest.param([], "spec", 'Invalid value: "array"', id="no spec at all"),
    ],
)
def test_what_the_model_refuses_is_refused(shops: Webhook[Any], spec: Any, field: str, message: str) -> None:
    status = asked(shops, Step.VALIDATE, shop(spec))["status"]
    assert (status["code"], status["reason"]) == (422, "Invalid")
    causes = {cause["field"]: cause["message"] for cause in status["details"]["causes"]}
    assert causes[field].startswith(message)
    assert SECRET not in json.dumps(status)


def test_what_is_missing_is_required() -> None:
    class Shop(BaseModel):
        color: Literal["red", "blue"]

    webhook = Webhook("example.com", "v1", "Shop", "shops", Shop)
    status = asked(webhook, Step.VALIDATE, {"spec": {}})["status"]
    assert status["details"]["causes"] == [
        {"reason": "FieldValueRequired", "message": "Required value", "field": "color"}
    ]


def test_rules_of_the_model_in_python_are_asked() -> None:
    class Range(BaseModel):
        least: int
        most: int

        @model_validator(mode="after")
        def ordered(self) -> Range:
            if self.least > self.most:
                raise ValueError("least must not exceed most")
            return self

    class Shop(BaseModel):
        range: Range

    webhook = Webhook("example.com", "v1", "Shop", "shops", Shop)
    status = asked(webhook, Step.VALIDATE, {"range": {"least": 2, "most": 1}})["status"]
    assert status["message"] == (
        'Shop.example.com "corner" is invalid: range: Invalid value: "object": least must not exceed most'
    )


def test_an_object_that_was_stored_wrong_can_be_mended(shops: Webhook[Any]) -> None:
    response = asked(shops, Step.VALIDATE, shop({"replicas": 1}), shop({"replicas": SECRET}))
    assert response["allowed"]
    (warning,) = response["warnings"]
    assert "spec.replicas" in warning
    assert SECRET not in warning


def raising(*_: Any) -> Any:
    raise RuntimeError(SECRET)


def half(*_: Any) -> Iterable[Any]:
    yield invalid("spec", 1, "no")
    raise RuntimeError(SECRET)


def wrong_type(held: Any) -> Any:
    held.spec.replicas = held


@pytest.mark.parametrize(
    ("step", "function", "problem"),
    [
        pytest.param(Step.DEFAULT, raising, "raising failed with RuntimeError", id="a defaulter raises"),
        pytest.param(Step.VALIDATE, raising, "raising failed with RuntimeError", id="a validator raises"),
        pytest.param(Step.VALIDATE, half, "half failed with RuntimeError", id="a validator raises half way"),
        pytest.param(Step.DEFAULT, lambda _: 1, "must return Shop or None, got int", id="a defaulter returns"),
        pytest.param(Step.DEFAULT, wrong_type, "wrong type: spec.replicas", id="a defaulter assigns"),
        pytest.param(Step.VALIDATE, lambda *_: [1], "must return FieldError or Warn, got int", id="a validator gives"),
        pytest.param(
            Step.VALIDATE, lambda *_: None, "must return FieldError or Warn, got None", id="a validator gives nothing"
        ),
    ],
)
def test_a_function_that_fails_fails_the_request_and_shows_no_secret(
    shops: Webhook[Any], step: Step, function: Callable[..., Any], problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    webhook = Webhook("example.com", "v1", "Shop", "shops", shops.model, [function], [function])
    response = asked(webhook, step, shop({"image": SECRET}))
    assert response["allowed"] is False
    assert (response["status"]["code"], response["status"]["reason"]) == (500, "InternalError")
    assert problem in response["status"]["message"]
    assert SECRET not in json.dumps(response)


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        pytest.param({"request": None}, "has no request", id="no request"),
        pytest.param({}, "has no request", id="nothing"),
        pytest.param(question(shop({}), kind={"kind": "Pod"}), "got Pod", id="another kind"),
        pytest.param(question(shop({}), kind="Shop"), "got no kind", id="no kind"),
        pytest.param(question(shop({}), subResource="status"), "Shop status", id="a subresource"),
        pytest.param(question("x"), "CREATE needs request.object", id="no object"),
        pytest.param(question(shop({}), operation="UPDATE"), "UPDATE needs request.oldObject", id="no old object"),
        pytest.param(question(None, None, "DELETE"), "DELETE needs request.oldObject", id="nothing to delete"),
    ],
)
@pytest.mark.parametrize("step", list(Step))
def test_a_request_that_is_none_is_refused(shops: Webhook[Any], step: Step, request_: Any, problem: str) -> None:
    response = review(shops, step, request_)["response"]
    assert response["allowed"] is False
    assert (response["status"]["code"], response["status"]["reason"]) == (400, "BadRequest")
    assert problem in response["status"]["message"]


def test_a_name_that_is_still_to_be_generated_is_told_as_empty(shops: Webhook[Any]) -> None:
    new = shop({"replicas": 65}, name=None, generateName="corner-")
    status = asked(shops, Step.VALIDATE, new, name="")["status"]
    assert status["message"].startswith('Shop.example.com "" is invalid')


@pytest.mark.parametrize("step", list(Step))
def test_an_object_without_bottom_is_refused(step: Step) -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    webhook: Webhook[Manifest] = Webhook("example.com", "v1", "Shop", "shops", None, [lambda _: None], [lambda *_: []])
    response = review(webhook, step, question(shop(deep)))["response"]
    assert (response["allowed"], response["status"]["code"]) == (False, 400)
    assert "nested too deeply" in response["status"]["message"]


def test_operations_are_those_of_the_api() -> None:
    assert list(Operation) == ["CREATE", "UPDATE", "DELETE", "CONNECT"]
