"""Rejected requests: code, reason, message and causes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from ocf.cluster import ListOptions, Subresource
from ocf.errors import BadRequestError, InvalidError, NoKindMatchError, NotFoundError
from ocf.objects import ObjectKey

if TYPE_CHECKING:
    from tests.cluster.conformance.conftest import Env

Ask: TypeAlias = Callable[["Env"], Awaitable[object]]

NAME = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
OWNER = "{apiVersion: v1, kind: ConfigMap, name: other, uid: 8a2c7a5e-0000-4000-8000-000000000000, controller: true}"
RIVAL = OWNER.replace("other", "rival").replace("-4000-", "-4001-")

LONG = "x" * 64
PREFIX = "x" * 254


def invalid(kind: str, field: str, detail: str, reason: str = "FieldValueInvalid") -> tuple[str, str]:
    """Return message and cause of an object with one invalid field."""
    return f'{kind} "demo" is invalid: {field}: {detail}', f"{reason} {field}: {detail}"


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        pytest.param(
            lambda env: env.create("ConfigMap", "metadata: {labels: {a: 'b c'}}"),
            invalid("ConfigMap", "metadata.labels", f'Invalid value: "b c": {LABEL_VALUE}'),
            id="a label's value",
        ),
        pytest.param(
            lambda env: env.create("ConfigMap", "metadata: {labels: {'a b': c}}"),
            invalid("ConfigMap", "metadata.labels", f'Invalid value: "a b": {KEY}'),
            id="a label's key",
        ),
        pytest.param(
            lambda env: env.create("ConfigMap", "metadata: {annotations: {'a b': c}}"),
            invalid("ConfigMap", "metadata.annotations", f'Invalid value: "a b": {KEY}'),
            id="an annotation's key",
        ),
        pytest.param(
            lambda env: env.create("ConfigMap", f"metadata: {{labels: {{a: {LONG}}}}}"),
            invalid("ConfigMap", "metadata.labels", f'Invalid value: "{LONG}": must be no more than 63 bytes'),
            id="a label's value that is too long, in bytes",
        ),
        pytest.param(
            lambda env: env.create("ConfigMap", f"metadata: {{labels: {{{LONG}: a}}}}"),
            invalid(
                "ConfigMap", "metadata.labels", f'Invalid value: "{LONG}": name part must be no more than 63 bytes'
            ),
            id="a label's key that is too long, in bytes",
        ),
        pytest.param(
            lambda env: env.create("ConfigMap", f"metadata: {{labels: {{{PREFIX}/a: a}}}}"),
            invalid(
                "ConfigMap",
                "metadata.labels",
                f'Invalid value: "{PREFIX}/a": prefix part must be no more than 253 bytes',
            ),
            id="a label's domain that is too long, in bytes",
        ),
        pytest.param(
            lambda env: env.create("ConfigMap", "metadata: {finalizers: [done]}"),
            invalid(
                "ConfigMap",
                "metadata.finalizers[0]",
                'Invalid value: "done": name is neither a standard finalizer name nor is it fully qualified',
            ),
            id="a finalizer without a domain",
        ),
        pytest.param(
            lambda env: env.create("Widget", "{metadata: {labels: {a: 'b c'}}, spec: {}}"),
            invalid("Widget.conformance.example.com", "metadata.labels", f'Invalid value: "b c": {LABEL_VALUE}'),
            id="a label's value of a custom resource",
        ),
        pytest.param(
            lambda env: env.create(
                "ConfigMap",
                f"metadata: {{ownerReferences: [{OWNER}, {RIVAL}]}}",
            ),
            invalid(
                "ConfigMap",
                "metadata.ownerReferences",
                "Invalid value: "
                '[{"apiVersion":"v1","kind":"ConfigMap","name":"other","uid":"<uid>","controller":true},'
                '{"apiVersion":"v1","kind":"ConfigMap","name":"rival","uid":"<uid>","controller":true}]: '
                'Only one reference can have Controller set to true. Found "true" in references for '
                "ConfigMap/other and ConfigMap/rival",
            ),
            id="two controllers",
        ),
    ],
)
@pytest.mark.promise("conformance")
async def test_invalid_values_are_reported_by_field(env: Env, ask: Ask, expected: tuple[str, str]) -> None:
    with env.error(422, "Invalid", *expected):
        await ask(env)


@pytest.mark.parametrize(
    ("kind", "api_version", "length"),
    [
        pytest.param("ConfigMap", "v1", 254, id="most objects"),
        pytest.param("Service", "v1", 64, id="a Service"),
        pytest.param("Widget", "conformance.example.com/v1", 254, id="a custom resource"),
    ],
)
async def test_the_length_of_a_name_is_in_characters(env: Env, kind: str, api_version: str, length: int) -> None:
    name = "x" * length
    detail = f'metadata.name: Invalid value: "{name}": must be no more than {length - 1} characters'
    group, slash, _ = api_version.rpartition("/")
    called = f"{kind}.{group}" if slash else kind

    with env.error(422, "Invalid", f'{called} "{name}" is invalid: {detail}', f"FieldValueInvalid {detail}"):
        await env.cluster.create(env.manifest(kind, None, name), field_manager="author")


async def test_a_finalizer_of_a_custom_resource_needs_no_domain(env: Env) -> None:
    created = await env.create("Widget", "{metadata: {finalizers: [done]}, spec: {}}")
    await env.merge("Widget", "metadata: {finalizers: null}")

    assert created["metadata"]["finalizers"] == ["done"]


async def test_a_selector_is_immutable(env: Env) -> None:
    await env.create("Deployment")

    with env.error(
        422,
        "Invalid",
        None,
        'FieldValueInvalid spec.template.metadata.labels: Invalid value: {"app":"demo"}: '
        "`selector` does not match template `labels`",
        'FieldValueInvalid spec.selector: Invalid value: {"matchLabels":{"app":"demo","b":"c"}}: field is immutable',
    ):
        await env.merge("Deployment", "spec: {selector: {matchLabels: {app: demo, b: c}}}")


@pytest.mark.parametrize(
    ("kind", "patch", "cause"),
    [
        pytest.param(
            "ConfigMap",
            "data: {a: '2'}",
            "FieldValueForbidden data: Forbidden: field is immutable when `immutable` is set",
            id="an immutable ConfigMap",
        ),
        pytest.param(
            "Secret",
            "stringData: {a: '2'}",
            "FieldValueForbidden data: Forbidden: field is immutable when `immutable` is set",
            id="an immutable Secret",
        ),
    ],
)
async def test_immutable_fields_cannot_change(env: Env, kind: str, patch: str, cause: str) -> None:
    await env.create(kind, "immutable: true")
    message = cause.partition(" ")[2]

    with env.error(422, "Invalid", f'{kind} "demo" is invalid: {message}', cause):
        await env.merge(kind, patch)


@pytest.mark.parametrize(
    ("ask", "subject"),
    [
        pytest.param(lambda env: env.get("ConfigMap"), 'configmaps "demo"', id="get"),
        pytest.param(lambda env: env.get("Deployment"), 'deployments.apps "demo"', id="get, of a group"),
        pytest.param(
            lambda env: env.get("Widget"), 'widgets.conformance.example.com "demo"', id="get, of a custom resource"
        ),
        pytest.param(
            lambda env: env.get("Deployment", part=Subresource.SCALE), 'deployments.apps "demo"', id="get a scale"
        ),
        pytest.param(lambda env: env.merge("ConfigMap", "data: {}"), 'configmaps "demo"', id="patch"),
        pytest.param(
            lambda env: env.merge("Deployment", "status: {}", part=Subresource.STATUS),
            'deployments.apps "demo"',
            id="patch a status",
        ),
        pytest.param(lambda env: env.delete("ConfigMap"), 'configmaps "demo"', id="delete"),
        pytest.param(lambda env: env.get("Gadget"), 'gadgets.conformance.example.com "<namespace>-demo"', id="cluster"),
    ],
)
async def test_a_missing_object_is_named(env: Env, ask: Ask, subject: str) -> None:
    with env.error(404, "NotFound", f"{subject} not found"):
        await ask(env)


@pytest.mark.parametrize(
    ("kind", "subject"),
    [
        pytest.param("ConfigMap", "configmaps", id="ConfigMap"),
        pytest.param("Deployment", "deployments.apps", id="Deployment"),
        pytest.param("HorizontalPodAutoscaler", "horizontalpodautoscalers.autoscaling", id="autoscaler"),
        pytest.param("Widget", "widgets.conformance.example.com", id="custom resource"),
    ],
)
async def test_a_name_that_is_taken_is_named(env: Env, kind: str, subject: str) -> None:
    await env.create(kind)

    with env.error(409, "AlreadyExists", f'{subject} "demo" already exists'):
        await env.create(kind)


async def test_a_name_has_allowed_characters(env: Env) -> None:
    detail = f'Invalid value: "No_Name": {NAME}'

    with env.error(
        422,
        "Invalid",
        f'ConfigMap "No_Name" is invalid: metadata.name: {detail}',
        f"FieldValueInvalid metadata.name: {detail}",
    ):
        await env.create("ConfigMap", name="No_Name")


async def test_a_name_is_required(env: Env) -> None:
    detail = "Required value: name or generateName is required"

    with env.error(
        422,
        "Invalid",
        f'ConfigMap "" is invalid: metadata.name: {detail}',
        f"FieldValueRequired metadata.name: {detail}",
    ):
        await env.create("ConfigMap", "metadata: {name: ''}")


async def test_an_undeclared_field_is_dropped_unless_it_is_applied(env: Env) -> None:
    made = await env.create("ConfigMap", "{data: {a: '1'}, colour: red}")

    assert "colour" not in made


@pytest.mark.parametrize("dry_run", [False, True])
async def test_an_undeclared_field_is_rejected_by_a_strict_create(env: Env, *, dry_run: bool) -> None:
    """The text of an apply that does not match the schema is another one, and so is its code."""
    body: Any = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "strict", "namespace": env.namespace}}
    with pytest.raises(BadRequestError, match=r'strict decoding error: unknown field "colour"'):
        await env.cluster.create({**body, "colour": "red"}, field_manager="m", strict=True, dry_run=dry_run)
    with pytest.raises(NotFoundError):
        await env.cluster.get(ObjectKey.of(body))
    made = await env.cluster.create({**body, "data": {"a": "1"}}, field_manager="m", strict=True)
    assert made["data"] == {"a": "1"}


@pytest.mark.parametrize(
    ("kind", "body", "problem"),
    [
        pytest.param(
            "ConfigMap", "data: {a: 1}", "number into Go struct field ConfigMap.data of type string", id="string"
        ),
        pytest.param(
            "Deployment",
            "spec: {replicas: 1.5}",
            "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
            id="integer",
        ),
        pytest.param(
            "Deployment",
            "spec: {paused: 1}",
            "number into Go struct field DeploymentSpec.spec.paused of type bool",
            id="boolean",
        ),
        pytest.param(
            "Service",
            "spec: {ports: 1}",
            "number into Go struct field ServiceSpec.spec.ports of type []v1.ServicePort",
            id="list",
        ),
    ],
)
async def test_a_value_of_a_wrong_type_is_a_bad_request(env: Env, kind: str, body: str, problem: str) -> None:
    version = env.key(kind).api_version.rpartition("/")[2]
    with env.error(
        400,
        "BadRequest",
        f'{kind} in version "{version}" cannot be handled as a {kind}: json: cannot unmarshal {problem}',
    ):
        await env.create(kind, body)


INGRESS = "status: {loadBalancer: {ingress: [{ip: 10.0.0.1}]}}"


async def test_an_ingress_needs_a_load_balancer(env: Env) -> None:
    await env.create("Service")
    detail = "Forbidden: may only be used when `spec.type` is 'LoadBalancer'"

    with env.error(422, "Invalid", None, f"FieldValueForbidden status.loadBalancer.ingress: {detail}"):
        await env.merge("Service", INGRESS, part=Subresource.STATUS)


async def test_a_load_balancer_has_an_ingress(env: Env) -> None:
    await env.create("Service", "spec: {type: LoadBalancer, selector: {app: demo}, ports: [{port: 80}]}")
    live = await env.merge("Service", INGRESS, part=Subresource.STATUS)

    assert live["status"]["loadBalancer"]["ingress"][0]["ip"] == "10.0.0.1"


TARGET = "scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: %s}"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            f"spec: {{minReplicas: 5, maxReplicas: 4, {TARGET % 'demo'}}}",
            ("spec.maxReplicas", "Invalid value: 4: must be greater than or equal to `minReplicas`"),
            id="bounds",
        ),
        pytest.param(
            f"spec: {{maxReplicas: 4, {TARGET % repr('')}}}",
            ("spec.scaleTargetRef.name", "Required value", "FieldValueRequired"),
            id="target",
        ),
    ],
)
async def test_an_autoscaler_is_validated(env: Env, body: str, expected: tuple[str, ...]) -> None:
    with env.error(422, "Invalid", *invalid("HorizontalPodAutoscaler.autoscaling", *expected)):
        await env.create("HorizontalPodAutoscaler", body)


async def test_a_repeated_owner_reference_is_stored_once(env: Env) -> None:
    owners = f"metadata: {{ownerReferences: [{OWNER}, {OWNER}]}}"
    made = await env.create("ConfigMap", owners)
    live = await env.merge("ConfigMap", owners)

    assert len(made["metadata"]["ownerReferences"]) == 1
    assert len(live["metadata"]["ownerReferences"]) == 1


async def test_two_different_owner_references_to_one_owner_are_both_stored(env: Env) -> None:
    made = await env.create("ConfigMap", f"metadata: {{ownerReferences: [{OWNER}, {OWNER.replace('true', 'false')}]}}")

    assert len(made["metadata"]["ownerReferences"]) == 2


async def test_an_apply_with_a_repeated_owner_reference_is_rejected(env: Env) -> None:
    problem = '.metadata.ownerReferences: duplicate entries for key [uid="<uid>"]'
    message = f"failed to create typed patch object (<namespace>/demo; /v1, Kind=ConfigMap): {problem}"
    with env.error(500, "", message, kind=InvalidError):
        await env.apply("us", "ConfigMap", f"metadata: {{ownerReferences: [{OWNER}, {OWNER}]}}")


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        pytest.param("monitoring.example.org/v1", "Monitor", id="group"),
        pytest.param("apps/v7", "Deployment", id="version"),
        pytest.param("apps/v1", "Monitor", id="kind"),
    ],
)
async def test_a_kind_that_is_not_served_is_told_from_an_object_that_does_not_exist(
    env: Env, api_version: str, kind: str
) -> None:
    key = ObjectKey(api_version, kind, "demo", env.namespace)
    metadata = {"name": key.name, "namespace": key.namespace}
    manifest = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
    for request in (
        env.cluster.get(key),
        env.cluster.list(api_version, kind, ListOptions(namespace=key.namespace)),
        env.cluster.apply(manifest, field_manager="us"),
        env.cluster.create(manifest, field_manager="us"),
        env.cluster.delete(key),
        env.cluster.is_namespaced(api_version, kind),
    ):
        with pytest.raises(NoKindMatchError) as unknown:
            await request
        assert (unknown.value.code, unknown.value.reason) == (404, "NotFound")
    with pytest.raises(NotFoundError) as absent:
        await env.cluster.get(ObjectKey("v1", "ConfigMap", "absent", env.namespace))
    assert not isinstance(absent.value, NoKindMatchError)
