"""The error tree: what a caller can decide by class."""

import json

import pytest

from ocf import errors
from ocf.errors import ApiError, BuildError, ConfigError, FieldProblem, ManifestError, StatusCause, api_error


@pytest.mark.parametrize(
    ("code", "reason", "name"),
    [
        pytest.param(400, "BadRequest", "BadRequestError", id="400"),
        pytest.param(401, "Unauthorized", "ForbiddenError", id="401"),
        pytest.param(403, "Forbidden", "ForbiddenError", id="403"),
        pytest.param(404, "NotFound", "NotFoundError", id="404"),
        pytest.param(405, "MethodNotAllowed", "BadRequestError", id="405"),
        pytest.param(409, "AlreadyExists", "AlreadyExistsError", id="409 already exists"),
        pytest.param(409, "Conflict", "ConflictError", id="409 conflict"),
        pytest.param(410, "Expired", "ExpiredError", id="410"),
        pytest.param(415, "UnsupportedMediaType", "BadRequestError", id="415"),
        pytest.param(422, "Invalid", "InvalidError", id="422"),
        pytest.param(429, "TooManyRequests", "TooManyRequestsError", id="429"),
        pytest.param(500, "InternalError", "ServerError", id="500"),
        pytest.param(503, "ServiceUnavailable", "ServerError", id="503"),
        pytest.param(0, "", "ServerError", id="no answer"),
    ],
)
def test_a_status_becomes_the_error_of_its_class(code: int, reason: str, name: str) -> None:
    cause = StatusCause("FieldManagerConflict", 'conflict with "x"', ".spec.replicas")
    error = api_error("message", code=code, reason=reason, causes=[cause], retry_after=3)
    assert type(error).__name__ == name
    assert (error.code, error.reason, error.causes, error.retry_after) == (code, reason, (cause,), 3)


@pytest.mark.parametrize(
    ("reason", "message", "manager"),
    [
        pytest.param("FieldManagerConflict", 'conflict with "us"', "us", id="plain"),
        pytest.param("FieldManagerConflict", 'conflict with "us" using apps/v1', "us", id="other version"),
        pytest.param(
            "FieldManagerConflict",
            'conflict with "hpa" with subresource "scale" using apps/v1 at 2026-01-31 12:00:00 +0000 UTC',
            "hpa",
            id="subresource and time",
        ),
        pytest.param("FieldManagerConflict", r'conflict with "a\"b\\c"', 'a"b\\c', id="quotes in the name"),
        pytest.param("FieldManagerConflict", "conflict", "", id="no name"),
        pytest.param("FieldValueInvalid", 'conflict with "us"', "", id="another reason"),
    ],
)
def test_a_conflict_names_the_field_manager_that_owns_the_field(reason: str, message: str, manager: str) -> None:
    assert StatusCause(reason, message, ".spec.replicas").manager == manager


def test_every_error_is_drawn_in_the_tree() -> None:
    classes = [name for name in errors.__all__ if isinstance(getattr(errors, name), type) and name.endswith("Error")]
    assert errors.__doc__
    missing = [name for name in classes if name not in errors.__doc__]
    assert missing == []


def test_every_error_is_one_of_ours() -> None:
    for name in errors.__all__:
        found = getattr(errors, name)
        if isinstance(found, type) and issubclass(found, BaseException):
            assert issubclass(found, errors.OcfError), name


def test_a_build_error_holds_every_problem_on_a_line_of_its_own() -> None:
    error = BuildError(["one", "two"])
    assert (error.problems, str(error)) == (("one", "two"), "one\ntwo")
    assert isinstance(error, ConfigError)


def test_a_manifest_error_names_subject_and_fields() -> None:
    error = ManifestError("Deployment a/b", [FieldProblem("spec.x", "unknown field"), FieldProblem("", "is empty")])
    assert str(error) == "Deployment a/b: spec.x: unknown field; is empty"


def test_a_refusal_is_no_mistake_of_ours() -> None:
    assert not issubclass(ApiError, ConfigError)


DENIED = 'deployments.apps "web" is forbidden: User "jane" cannot patch resource "deployments" in API group "apps"'


@pytest.mark.parametrize(
    ("message", "rule", "role"),
    [
        pytest.param(
            f'{DENIED} in the namespace "shop"',
            {"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["web"], "verbs": ["patch"]},
            'Role in the namespace "shop"',
            id="an object in a namespace",
        ),
        pytest.param(
            f'{DENIED} in the namespace "shop": RBAC: role.rbac.authorization.k8s.io "x" not found',
            {"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["web"], "verbs": ["patch"]},
            'Role in the namespace "shop"',
            id="with a reason of the authorizer",
        ),
        pytest.param(
            'pods is forbidden: User "system:serviceaccount:ops:op" cannot list resource "pods" in API group "" at the'
            " cluster scope",
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
            "ClusterRole",
            id="all namespaces",
        ),
        pytest.param(
            'configmaps "a" is forbidden: User "jane" cannot create resource "configmaps" in API group "" in the'
            ' namespace "shop"',
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
            'Role in the namespace "shop"',
            id="a create, which no rule with a name allows where the name is not in the path",
        ),
        pytest.param(
            'deployments.apps "web" is forbidden: User "jane" cannot update resource "deployments/scale" in API group'
            ' "apps" in the namespace "shop"',
            {"apiGroups": ["apps"], "resources": ["deployments/scale"], "resourceNames": ["web"], "verbs": ["update"]},
            'Role in the namespace "shop"',
            id="a subresource",
        ),
        # A chart lacked it: https://github.com/argoproj/argo-helm/issues/4028
        pytest.param(
            'serviceaccounts "deployer" is forbidden: User "system:serviceaccount:ops:op" cannot impersonate resource'
            ' "serviceaccounts" in API group "" in the namespace "shop"',
            {
                "apiGroups": [""],
                "resources": ["serviceaccounts"],
                "resourceNames": ["deployer"],
                "verbs": ["impersonate"],
            },
            'Role in the namespace "shop"',
            id="the impersonation of a service account",
        ),
        pytest.param(
            'userextras.authentication.k8s.io "view" is forbidden: User "op" cannot impersonate resource'
            ' "userextras/scopes" in API group "authentication.k8s.io" at the cluster scope',
            {
                "apiGroups": ["authentication.k8s.io"],
                "resources": ["userextras/scopes"],
                "resourceNames": ["view"],
                "verbs": ["impersonate"],
            },
            "ClusterRole",
            id="the impersonation of an attribute",
        ),
    ],
)
def test_a_forbidden_request_names_the_missing_rule_and_its_role(
    message: str, rule: dict[str, list[str]], role: str
) -> None:
    error = api_error(message, code=403, reason="Forbidden")
    assert isinstance(error, ApiError)
    assert error.message == message
    text = str(error).removeprefix(f"{message}; allow it with the rule ")
    pasted, _, rest = text.partition("} ")
    assert json.loads(f"{pasted}}}") == rule
    said, _, command = rest.partition(", as printed by ")
    assert said == f"of a {role} that is bound to this user"
    assert command.startswith("kubectl create role " if "namespace" in role else "kubectl create clusterrole ")


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(
            'pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" at the cluster'
            " scope",
            id="a request without credentials, whose user must not get a role",
        ),
        pytest.param('pods "a" is forbidden: exceeded quota: q, requested: pods=1', id="a quota"),
        pytest.param('admission webhook "a.b.c" denied the request: no', id="a webhook"),
        pytest.param(
            'admission webhook "a.b.c" denied the request: pods is forbidden: User "jane" cannot list resource "pods"'
            ' in API group "" at the cluster scope',
            id="a webhook that quotes such a message",
        ),
        pytest.param(
            'configmaps "a" is forbidden: unable to create new content in namespace a because it is being terminated',
            id="a namespace that ends",
        ),
    ],
)
def test_what_no_role_would_allow_names_no_rule(message: str) -> None:
    assert str(api_error(message, code=403, reason="Forbidden")) == message
