"""Admission policies: rules in CEL that the API server evaluates itself, also while the operator is down.

Source: https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/ and
https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ocf.errors import BuildError, NotFoundError
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest
from ocf.objects.name_validation import dns_subdomain
from ocf.runtime.admission.match import Match, Operation
from ocf.runtime.admission.registration import registered
from ocf.runtime.crds.versions import served_by_model

if TYPE_CHECKING:
    from ocf.cluster import Cluster

__all__ = [
    "MUTATING",
    "POLICY_API",
    "ApplyConfiguration",
    "JSONPatch",
    "Parameters",
    "Policy",
    "PolicyAction",
    "Validation",
    "apply_policies",
    "policy_manifests",
    "policy_problems",
    "registered_policies",
]

POLICY_API: Final = "admissionregistration.k8s.io"
_VALIDATING: Final = "ValidatingAdmissionPolicy"
MUTATING: Final = "MutatingAdmissionPolicy"

PolicyAction: TypeAlias = Literal["Deny", "Warn", "Audit"]

_ACTIONS: Final = ("Deny", "Warn", "Audit")
_IDENTIFIER: Final = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_MATCH: Final = Match()
_NOT_DELETED: Final = "not-being-deleted"
_NOT_DELETED_EXPRESSION: Final = 'request.operation != "UPDATE" || !has(oldObject.metadata.deletionTimestamp)'
"""A condition on the stored object, because the API server removes the field from a create only after mutations."""


@dataclass(frozen=True, slots=True)
class Validation:
    """A rule of a policy, which holds if its expression is true.

    Args:
        expression: The rule in CEL. It reads `object` (null for a delete), `oldObject` (null for a create), `request`,
            `namespaceObject`, `variables` and `params`.
        message: What the user reads where the rule does not hold, one line; empty for the expression.
        message_expression: An expression that returns the message. The API server uses `message` if it fails or returns
            several lines.
        reason: The reason of the response, which decides its code: 422, 403 or 413.

    Example:
        >>> Validation("object.spec.replicas <= 5", "spec.replicas must be at most 5").manifest()
        {'expression': 'object.spec.replicas <= 5', 'message': 'spec.replicas must be at most 5', 'reason': 'Invalid'}
    """

    expression: str
    message: str = ""
    message_expression: str = ""
    reason: Literal["Invalid", "Forbidden", "RequestEntityTooLarge"] = "Invalid"

    def manifest(self) -> dict[str, str]:
        """Return the rule, as manifests have it."""
        given = {
            "expression": self.expression,
            "message": self.message,
            "messageExpression": self.message_expression,
            "reason": self.reason,
        }
        return {key: value for key, value in given.items() if value}


@dataclass(frozen=True, slots=True)
class ApplyConfiguration:
    """A mutation of a policy: fields that are merged into the object as a server-side apply merges them.

    Args:
        expression: An expression that returns the fields: `Object{spec: Object.spec{replicas: 1}}`.
    """

    expression: str

    def manifest(self) -> dict[str, Any]:
        """Return the mutation, as manifests have it."""
        return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": self.expression}}


@dataclass(frozen=True, slots=True)
class JSONPatch:
    """A mutation of a policy: a JSON patch, which can also remove fields and entries of lists.

    Args:
        expression: An expression that returns the patch: `[JSONPatch{op: "add", path: "/spec/replicas", value: 1}]`.
    """

    expression: str

    def manifest(self) -> dict[str, Any]:
        """Return the mutation, as manifests have it."""
        return {"patchType": "JSONPatch", "jsonPatch": {"expression": self.expression}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Objects that the expressions of a policy read as `params`; the policy is evaluated once for each.

    Args:
        api_version: Group and version of their kind.
        kind: Their kind, such as `ConfigMap`, or one of your own.
        name: Name of the object; empty to select by labels.
        namespace: Its namespace; empty for the namespace of the request, or for a cluster-scoped kind.
        selector: Label selector of the objects, in place of a name; `{}` for all.
        missing: Whether a request is denied or allowed while there is no such object.

    Raises:
        BuildError: If there is a name and a selector, or neither.
    """

    api_version: str
    kind: str
    name: str = ""
    namespace: str = ""
    selector: Mapping[str, Any] | None = None
    missing: Literal["Deny", "Allow"] = "Deny"

    def __post_init__(self) -> None:
        if bool(self.name) == (self.selector is not None):
            raise BuildError([f"parameters of kind {self.kind} need either a name or a selector"])

    def reference(self) -> dict[str, Any]:
        """Return the field `paramRef` of a binding."""
        place = {"name": self.name} if self.name else {"selector": dict(self.selector or {})}
        namespace = {"namespace": self.namespace} if self.namespace else {}
        return {**place, **namespace, "parameterNotFoundAction": self.missing}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Rules of a kind that the API server evaluates itself, so that they hold while the operator is down.

    `Policy.of` reads the kind from a model. Validations become a ValidatingAdmissionPolicy (Kubernetes 1.30), mutations
    a MutatingAdmissionPolicy (Kubernetes 1.36), each with its binding. Expressions are compiled by `ocf manifests`, and
    by every API server to which the policy is applied, the embedded one included; not when the value is built.

    Args:
        name: Name of the policy and of its binding, which no other policy of the cluster may have: begin it with the
            name of the operator.
        group: Group of the kind; empty for the core group.
        version: Version in which the expressions read the object.
        plural: Plural name of the resource.
        validations: Rules.
        bounds: A model that states bounds of fields, which become rules: `Field(le=10)`, lengths, patterns,
            enumerations, and fields without a default, which have to be set. Only fields that the author declares
            count, so it may be a small model, or a subclass of a client model.
        mutations: Changes of objects, applied in this order.
        variables: Expressions by name, which later expressions read as `variables.NAME`.
        audit_annotations: Expressions by key whose texts the API server adds to its audit log.
        match: Which requests the rules are for. Without `everywhere`, the namespaces of Kubernetes and of the operator
            are left out, unless the kind is a custom resource.
        actions: What happens where a validation does not hold: the request is denied, the user is warned, or it is
            in the audit log.
        failure_policy: Whether a request is denied if an expression cannot be evaluated, for example because a field is
            missing.
        parameters: Objects that the expressions read as `params`; None for none.
        reinvoke: Whether mutations run again after other policies and webhooks have changed the object.
        being_deleted: Whether validations and mutations are also for updates of objects that are being deleted, as a
            rule about finalizers needs it. By default they are not, because a rule that such an object breaks keeps
            its finalizers from being removed. Bounds never are.

    Raises:
        BuildError: If there is no rule, a name or an action is invalid, or a bound cannot be a rule.
    """

    name: str
    group: str
    version: str
    plural: str
    validations: Sequence[Validation] = ()
    bounds: type[BaseModel] | None = None
    mutations: Sequence[ApplyConfiguration | JSONPatch] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    audit_annotations: Mapping[str, str] = field(default_factory=dict)
    match: Match = _MATCH
    actions: Sequence[PolicyAction] = ("Deny",)
    failure_policy: Literal["Fail", "Ignore"] = "Fail"
    parameters: Parameters | None = None
    reinvoke: bool = False
    being_deleted: bool = False

    def __post_init__(self) -> None:
        if problems := [f"policy {self.name}: {problem}" for problem in self._problems()]:
            raise BuildError(problems)

    @staticmethod
    def of(  # noqa: PLR0913 (settings, each with a default)
        model: type[BaseModel],
        name: str,
        *,
        validations: Sequence[Validation] = (),
        bounds: type[BaseModel] | None = None,
        mutations: Sequence[ApplyConfiguration | JSONPatch] = (),
        variables: Mapping[str, str] | None = None,
        audit_annotations: Mapping[str, str] | None = None,
        match: Match = _MATCH,
        actions: Sequence[PolicyAction] = ("Deny",),
        failure_policy: Literal["Fail", "Ignore"] = "Fail",
        parameters: Parameters | None = None,
        reinvoke: bool = False,
        being_deleted: bool = False,
    ) -> Policy:
        """Return the policy of a custom resource, or of a built-in kind.

        Args:
            model: A `CustomResource`, or a model of the Kubernetes client, such as `V1Pod`.
            name: See `Policy`, as for all others.

        Raises:
            BuildError: If the model is of neither, and for the reasons of `Policy`.

        Example:
            >>> from kubernetes.client import V1Service
            >>> private = Policy.of(
            ...     V1Service,
            ...     "shops-private-services",
            ...     validations=[Validation('object.spec.type != "LoadBalancer"', "services must be private")],
            ... )
            >>> [manifest["kind"] for manifest in private.manifests()]
            ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding']
        """
        group, version, _, plural = served_by_model(model)
        return Policy(
            name=name,
            group=group,
            version=version,
            plural=plural,
            validations=validations,
            bounds=bounds,
            mutations=mutations,
            variables=variables or {},
            audit_annotations=audit_annotations or {},
            match=match,
            actions=actions,
            failure_policy=failure_policy,
            parameters=parameters,
            reinvoke=reinvoke,
            being_deleted=being_deleted,
        )

    def manifests(self, *, namespace: str = "", mutating_version: str = "v1") -> list[Manifest]:
        """Return the policies and their bindings, to be applied.

        Args:
            namespace: Namespace of the operator, which is left out with those of Kubernetes; empty for none.
            mutating_version: Version of a MutatingAdmissionPolicy, `v1` (Kubernetes 1.36) or `v1beta1` (1.34).
        """
        found: list[Manifest] = []
        if self._validates:
            rules: dict[str, Any] = {
                "validations": [one.manifest() for one in self._all_validations()],
                "auditAnnotations": [
                    {"key": key, "valueExpression": text} for key, text in self.audit_annotations.items()
                ],
            }
            found += self._with_binding(_VALIDATING, "v1", namespace, rules, {"validationActions": [*self.actions]})
        if self.mutations:
            rules = {
                "mutations": [one.manifest() for one in self.mutations],
                "reinvocationPolicy": "IfNeeded" if self.reinvoke else "Never",
            }
            found += self._with_binding(MUTATING, mutating_version, namespace, rules, {})
        return found

    @property
    def _validates(self) -> bool:
        return bool(self.validations or self.bounds is not None or self.audit_annotations)

    def _all_validations(self) -> Iterator[Validation]:
        yield from self.validations
        if self.bounds is not None:
            from ocf.runtime.admission.policy_bounds import bound_rules

            shows_values = (self.group, self.plural) != ("", "secrets")
            for expression, message, message_expression in bound_rules(self.bounds):
                yield Validation(expression, message, message_expression if shows_values else "")

    def _with_binding(
        self, kind: str, version: str, namespace: str, rules: Mapping[str, Any], binding: Mapping[str, Any]
    ) -> Iterator[Manifest]:
        left_out = self.match.left_out(self.group, [namespace] if namespace else [])
        params = self.parameters
        constraints = {
            "matchPolicy": self.match.policy,
            "namespaceSelector": self.match.namespace_selector(left_out),
            "objectSelector": dict(self.match.objects),
            "resourceRules": [self.match.rule(self.group, self.version, self.plural)],
        }
        param_kind = {"apiVersion": params.api_version, "kind": params.kind} if params is not None else None
        spec = {
            "failurePolicy": self.failure_policy,
            "paramKind": param_kind,
            "matchConstraints": constraints,
            "matchConditions": self._match_conditions(),
            "variables": [{"name": name, "expression": text} for name, text in self.variables.items()],
            **rules,
        }
        bound = {"policyName": self.name, "paramRef": params.reference() if params is not None else None, **binding}
        for each, content in ((kind, spec), (f"{kind}Binding", bound)):
            yield {
                "apiVersion": f"{POLICY_API}/{version}",
                "kind": each,
                "metadata": {"name": self.name},
                "spec": {key: value for key, value in content.items() if value},
            }

    def _match_conditions(self) -> list[dict[str, str]]:
        found = self.match.match_conditions()
        if Operation.UPDATE in self.match.operations and not self.being_deleted:
            found.append({"name": _NOT_DELETED, "expression": _NOT_DELETED_EXPRESSION})
        return found

    def _problems(self) -> Iterator[str]:
        yield from (f'its name "{self.name}": {problem}' for problem in dns_subdomain(self.name))
        if not (self.version and self.plural):
            yield f'a policy needs the version and the plural of its kind, got "{self.version}" and "{self.plural}"'
        if not self._validates and not self.mutations:
            yield "a policy needs validations, bounds, audit annotations or mutations"
        yield from self._action_problems()
        if self.failure_policy not in {"Fail", "Ignore"}:
            yield f'failure_policy must be "Fail" or "Ignore", got {self.failure_policy!r}'
        if self.mutations and Operation.DELETE in self.match.operations:
            yield "a delete cannot be mutated: use two policies, or take DELETE out of the operations"
        if _NOT_DELETED in self.match.conditions:
            yield f'the condition "{_NOT_DELETED}" of the match is set by ocf: choose another name'
        for name in self.variables:
            if not _IDENTIFIER.fullmatch(name):
                yield f'variables: "{name}" must be an identifier of CEL: letters, digits and underscores'
        for what, text in self._expressions():
            if not text.strip():
                yield f"{what}: the expression is empty"
        yield from (
            f"validations[{index}]: the message must be one line, got {one.message!r:.60}"
            for index, one in enumerate(self.validations)
            if re.search(r"[\n\r]", one.message.strip())
        )
        yield from self._bound_problems()

    def _action_problems(self) -> Iterator[str]:
        allowed = ", ".join(_ACTIONS)
        if not self.actions:
            yield f"actions: at least one of {allowed} is required"
        for action in sorted({*self.actions} - {*_ACTIONS}):
            yield f"actions: must be of {allowed}, got {action!r}"
        if len({*self.actions}) < len(self.actions):
            yield f"actions: each at most once, got {', '.join(self.actions)}"
        if {"Deny", "Warn"} <= {*self.actions}:
            yield "actions: a request that is denied shows the message already: use either Deny or Warn"

    def _expressions(self) -> Iterator[tuple[str, str]]:
        yield from ((f"validations[{index}]", one.expression) for index, one in enumerate(self.validations))
        yield from ((f"mutations[{index}]", one.expression) for index, one in enumerate(self.mutations))
        yield from ((f"variables[{name}]", text) for name, text in self.variables.items())
        yield from ((f"audit_annotations[{key}]", text) for key, text in self.audit_annotations.items())

    def _bound_problems(self) -> Iterator[str]:
        if self.bounds is None:
            return
        others = {*self.match.operations} - {Operation.CREATE, Operation.UPDATE}
        if others or tuple(self.match.subresources) != ("",):
            yield "bounds are for creates and updates of the object itself: use validations for other requests"
        from ocf.runtime.admission.policy_bounds import bound_rules

        try:
            bound_rules(self.bounds)
        except BuildError as error:
            yield from error.problems


def policy_manifests(
    policies: Iterable[Policy], *, namespace: str = "", mutating_version: str = "v1"
) -> list[Manifest]:
    """Return the manifests of policies; see `Policy.manifests`."""
    return [
        manifest
        for policy in policies
        for manifest in policy.manifests(namespace=namespace, mutating_version=mutating_version)
    ]


def policy_problems(policies: Iterable[Policy]) -> Iterator[str]:
    """Yield why policies cannot be in one cluster."""
    names = [policy.name for policy in policies]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"policies: two have the name {name}, which has to be unique in the cluster"


async def apply_policies(
    cluster: Cluster, policies: Collection[Policy], *, namespace: str = "", field_manager: str
) -> None:
    """Apply policies, in the version that the cluster serves.

    Raises:
        ApiError: If the API server rejects a policy, because an expression cannot be compiled, or does not serve the
            kind.
    """
    for manifest in await _served_manifests(cluster, policies, namespace):
        await cluster.apply(manifest, field_manager=field_manager, force=True)


@asynccontextmanager
async def registered_policies(
    cluster: Cluster, policies: Collection[Policy], *, namespace: str, field_manager: str, shared: bool = False
) -> AsyncIterator[None]:
    """Apply policies, and delete them when the block ends, for development.

    Args:
        shared: See `registered`.
    """
    manifests = await _served_manifests(cluster, policies, namespace)
    async with registered(cluster, manifests, field_manager=field_manager, shared=shared):
        yield


async def _served_manifests(cluster: Cluster, policies: Collection[Policy], namespace: str) -> list[Manifest]:
    version = "v1"
    if any(policy.mutations for policy in policies):
        try:
            await cluster.is_namespaced(f"{POLICY_API}/v1", MUTATING)
        except NotFoundError:
            version = "v1beta1"
    return policy_manifests(policies, namespace=namespace, mutating_version=version)
