"""A 500 that the request caused is a client error. The messages are those of a real API server (1.36.3)."""

import pytest

from ocf.cluster.client.responses import status_error
from ocf.cluster.impersonation import Impersonation
from ocf.cluster.server_errors import as_client_error, as_impersonation_error, without_values
from ocf.errors import (
    ApiError,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    ServerError,
    StatusCause,
    api_error,
)
from ocf_server import EmbeddedCluster

UNFITTING = (
    "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): "
    ".spec.colour: field not declared in schema"
)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(UNFITTING, id="an apply that does not match the schema"),
        pytest.param("unknown patch type: smash in map: map[$patch:smash]", id="an unknown directive"),
        pytest.param("map: map[image:x] does not contain declared merge key: name", id="an item without its key"),
    ],
)
def test_a_500_for_an_invalid_request_is_an_invalid_error(message: str) -> None:
    error = as_client_error(api_error(message, code=500))

    assert isinstance(error, InvalidError)
    assert (error.code, error.message) == (500, message)


def test_the_problems_of_an_apply_are_in_order() -> None:
    """The API server gives them in another order each time."""
    head, problems = (
        "failed to create typed patch object (a/b; v1, Kind=Pod): errors:",
        ["  .spec.b: x", "  .spec.a: x"],
    )
    messages = {
        as_client_error(api_error("\n".join([head, *each]), code=500)).message for each in (problems, problems[::-1])
    }
    assert messages == {f"{head}\n  .spec.a: x\n  .spec.b: x"}


@pytest.mark.parametrize(
    ("message", "code", "reason"),
    [
        pytest.param("etcdserver: request timed out", 500, "", id="storage"),
        pytest.param(UNFITTING, 500, "InternalError", id="with a reason"),
        pytest.param(UNFITTING, 503, "", id="with another code"),
    ],
)
def test_any_other_error_is_unchanged(message: str, code: int, reason: str) -> None:
    assert isinstance(as_client_error(api_error(message, code=code, reason=reason)), ServerError)


async def test_both_clusters_raise_the_same_error() -> None:
    """The client raises for the answer of a real API server what the embedded cluster raises."""
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"}}
    with pytest.raises(InvalidError) as caught:
        await EmbeddedCluster().apply({**web, "spec": {"colour": "red"}}, field_manager="us")
    status = {"kind": "Status", "status": "Failure", "message": UNFITTING, "code": 500}
    answered: ApiError = status_error(status, request_line="PATCH /apis/apps/v1/namespaces/default/deployments/web")

    assert type(answered) is type(caught.value)
    assert (answered.message, answered.code) == (caught.value.message, caught.value.code)


LABEL = "metadata.labels"
QUOTED = 'Invalid value: "hunter2!": a valid label must be an empty string or consist of alphanumeric characters'
DENIED = 'admission webhook "check.example.com" denied the request'
POLICY = "deployments.apps \"web\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request"


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        pytest.param(
            api_error(
                f'Deployment.apps "web" is invalid: {LABEL}: {QUOTED}',
                code=422,
                reason="Invalid",
                causes=[StatusCause("FieldValueInvalid", QUOTED, LABEL)],
            ),
            f"{LABEL}: Invalid value",
            id="an invalid value",
        ),
        pytest.param(
            api_error(
                "invalid",
                code=422,
                reason="Invalid",
                causes=[
                    StatusCause("FieldValueNotSupported", 'Unsupported value: "hunter2!"', "spec.mode"),
                    StatusCause("FieldValueTooLong", "Too long: may not be more than 3 bytes", "spec.user"),
                    StatusCause("FieldValueOfTheFuture", "hunter2!", "spec.age"),
                ],
            ),
            "spec.age: FieldValueOfTheFuture; spec.mode: Unsupported value; spec.user: Too long",
            id="several fields, and a type that is not known",
        ),
        pytest.param(
            InvalidError(
                "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): "
                '.spec.replicas: expected numeric (int or float), got "hunter2!"',
                code=500,
            ),
            "failed to create typed patch object: .spec.replicas",
            id="an apply that does not match the schema",
        ),
        pytest.param(
            api_error('quantities must match the regular expression, got "hunter2!"', code=400, reason="BadRequest"),
            "BadRequest (HTTP 400)",
            id="a value that cannot be decoded",
        ),
        pytest.param(api_error(f"{DENIED}: hunter2! is short", code=403, reason="Forbidden"), DENIED, id="a webhook"),
        pytest.param(api_error(f"{DENIED}: hunter2! is short", code=503), DENIED, id="a webhook with its own status"),
        pytest.param(
            api_error(
                f"{POLICY}: hunter2! is short",
                code=422,
                reason="Invalid",
                causes=[StatusCause("", f"{POLICY}: hunter2! is short", "")],
            ),
            POLICY,
            id="a policy",
        ),
    ],
)
def test_a_rejection_without_values_has_the_field_and_the_kind_of_the_problem(error: ApiError, shown: str) -> None:
    """https://github.com/PackRat-AI/PackRat/issues/2164: a message of a validation repeats what was sent."""
    safe = without_values(error)

    assert safe.message == f"{shown} (the values are not shown, because they may come from a Secret)"
    assert (type(safe), safe.code, safe.reason) == (type(error), error.code, error.reason)
    assert [cause.field for cause in safe.causes] == [cause.field for cause in error.causes]
    assert "hunter2" not in repr((vars(safe), safe.args))


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(
            ConflictError(
                'Apply failed with 1 conflict: conflict with "kubectl": .spec.replicas',
                code=409,
                causes=[StatusCause("FieldManagerConflict", 'conflict with "kubectl"', ".spec.replicas")],
            ),
            id="a conflict",
        ),
        pytest.param(
            api_error('secrets "a" is forbidden: User "u" cannot patch resource', code=403, reason="Forbidden"),
            id="a missing right",
        ),
        pytest.param(api_error("etcdserver: request timed out", code=500), id="an outage"),
    ],
)
def test_an_error_that_quotes_no_value_is_unchanged(error: ApiError) -> None:
    assert without_values(error) is error


@pytest.mark.parametrize(
    "message",
    [
        "etcdserver: request is too large",
        "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2500537 vs. 2097152)",
    ],
)
def test_an_object_that_is_too_large_for_etcd_is_a_client_error(message: str) -> None:
    """As a 1.36 API server answers to an object of 1.6 and of 2.5 MB."""
    error = as_client_error(api_error(message, code=500))
    assert (type(error), error.code, error.reason) == (BadRequestError, 500, "RequestEntityTooLarge")


# As a 1.36 API server answers, whichever of the rights to impersonate is missing.
CONSTRAINED = (
    'configmaps "settings" is forbidden: User "op" cannot impersonate-on:serviceaccount:get resource "configmaps" in'
    ' API group "" in the namespace "shop"'
)


@pytest.mark.parametrize(
    ("user", "message"),
    [
        pytest.param(
            Impersonation("system:serviceaccount:town:deployer"),
            'serviceaccounts "deployer" is forbidden: User "op" cannot impersonate resource "serviceaccounts" in API'
            ' group "" in the namespace "town"',
            id="an account",
        ),
        pytest.param(
            Impersonation("jane"),
            'users "jane" is forbidden: User "op" cannot impersonate resource "users" in API group "" at the cluster'
            " scope",
            id="a user",
        ),
        pytest.param(
            Impersonation("jane", "7", ("dev",), {"scopes": ("view",)}),
            'users "jane" is forbidden: User "op" cannot impersonate resource "users" in API group "" at the cluster'
            ' scope, or not with group "dev", the uid, scopes',
            id="any of several attributes",
        ),
    ],
)
def test_a_refused_impersonation_names_the_user(user: Impersonation, message: str) -> None:
    """And so the rule of a generated role, which has the verb for all releases."""
    error = as_impersonation_error(api_error(CONSTRAINED, code=403, reason="Forbidden"), user)
    assert (type(error), error.message, error.code, error.reason) == (ForbiddenError, message, 403, "Forbidden")
    assert '"verbs": ["impersonate"]}' in str(error)


@pytest.mark.parametrize(
    ("message", "user"),
    [
        pytest.param(CONSTRAINED, None, id="of the user who authenticates"),
        pytest.param(
            'configmaps "a" is forbidden: User "jane" cannot get resource "configmaps" in API group "" at the cluster'
            " scope",
            Impersonation("jane"),
            id="of what the other user wants to do",
        ),
    ],
)
def test_another_refusal_stays_as_it_is(message: str, user: Impersonation | None) -> None:
    error = api_error(message, code=403, reason="Forbidden")
    assert as_impersonation_error(error, user) is error
