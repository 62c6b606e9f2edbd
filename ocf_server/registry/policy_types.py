"""Type checking of the expressions of admission policies against the schemas of the kinds that they match.

A real API server accepts an expression with a misspelt field, because `object` has no type there; the evaluation fails.
kube-controller-manager checks the types afterwards, and reports in the status of the policy what it finds. Source:
`staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/typechecking.go` of Kubernetes 1.36.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from ocf.objects import Manifest
from ocf.objects.paths import get_field
from ocf.schema.builtin import ApiResource, ListType, MapType, Scalar, StructType, Type, struct

if TYPE_CHECKING:
    from ocf_server.cel.environment import CompiledExpression
    from ocf_server.cel.types import CelType

__all__ = ["FindKind", "type_warnings"]

FindKind = Callable[[str, str, str], ApiResource | None]
"""Returns the kind of a group, a version and a plural; None if it is not known."""

_ALL: Final = "*"
_MOST_KINDS: Final = 10
_FIELDS: Final = (
    ("matchConditions", ("expression",)),
    ("validations", ("expression",)),
    ("validations", ("messageExpression",)),
    ("auditAnnotations", ("valueExpression",)),
    ("mutations", ("applyConfiguration", "expression")),
    ("mutations", ("jsonPatch", "expression")),
)
_HEAD: Final = ("apiVersion", "kind", "metadata")


def type_warnings(policy: Manifest, find: FindKind) -> list[dict[str, str]]:
    """Return the type errors of a policy, in the form of `status.typeChecking.expressionWarnings`.

    The status has only those of validations and their messages; here are those of all expressions.

    Args:
        policy: A ValidatingAdmissionPolicy or MutatingAdmissionPolicy whose expressions can be compiled.
        find: Finds the kinds that its rules name; a rule with a wildcard is left out, as is the eleventh kind.
    """
    found: dict[str, str] = {}
    for kind in _kinds(policy["spec"], find):
        for path, compiled in _compiled(policy["spec"], kind):
            if compiled.problem:
                problem = compiled.problem.removeprefix("compilation failed: ")
                found[path] = f"{found.get(path, '')}{_shown(kind)}: {problem}\n"
    return [{"fieldRef": path, "warning": text} for path, text in found.items()]


def _kinds(spec: Mapping[str, Any], find: FindKind) -> list[ApiResource]:
    found: dict[str, ApiResource] = {}
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        groups, versions, resources = (rule.get(field) or () for field in ("apiGroups", "apiVersions", "resources"))
        for group, version, resource in product(groups, versions, resources):
            # The object of a subresource may be of another kind.
            kind = None if _ALL in (group, version, resource) or "/" in resource else find(group, version, resource)
            if kind is not None:
                found[_shown(kind)] = kind
    return [found[name] for name in sorted(found)][:_MOST_KINDS]


def _shown(kind: ApiResource) -> str:
    return f"{kind.group}/{kind.version}, Kind={kind.kind}"


def _compiled(spec: Mapping[str, Any], kind: ApiResource) -> "Iterator[tuple[str, CompiledExpression]]":
    """Yield the expressions of a policy with their paths, compiled for objects of a kind."""
    from ocf_server.cel.environment import Environment

    environment = Environment.of_policy(spec, object_type=_object_type(kind))
    for index, variable in enumerate(spec.get("variables") or ()):
        compiled = environment.add_variable(variable["name"], variable["expression"])
        yield f"spec.variables[{index}].expression", compiled
    for part, field in _FIELDS:
        for index, one in enumerate(spec.get(part) or ()):
            if text := get_field(one, field):
                path = f"spec.{part}[{index}].{'.'.join(field)}"
                yield path, environment.compiled(text, mutates=part == "mutations")


def _object_type(kind: ApiResource) -> "CelType":
    """Return the type of the objects of a kind; `dyn` where the schema allows more than it declares."""
    from ocf_server.cel.types import ANY, STRING, CelType, schema_kind

    if not kind.custom:
        return _of(kind.type, ())
    if kind.schema is None:
        return ANY
    content = schema_kind(kind.schema) or ANY
    head = {"apiVersion": STRING, "kind": STRING, "metadata": _of(struct("meta.v1.ObjectMeta"), ())}
    fields = {name: (name, head[name]) for name in _HEAD}
    return ANY if content.fields is None else CelType("object", fields={**content.fields, **fields})


@cache
def _scalars() -> "Mapping[Scalar, CelType]":
    from ocf_server.cel.types import BOOL, BYTES, DOUBLE, INT, STRING, TIMESTAMP

    return {
        Scalar.TEXT: STRING,
        Scalar.INT32: INT,
        Scalar.INT64: INT,
        Scalar.NUMBER: DOUBLE,
        Scalar.BOOLEAN: BOOL,
        Scalar.BYTES: BYTES,
        Scalar.TIME: TIMESTAMP,
        Scalar.MICRO_TIME: TIMESTAMP,
    }


def _of(declared: Type, above: tuple[StructType, ...]) -> "CelType":
    from ocf_server.cel.types import ANY, STRING, CelType, escaped, list_of, map_of

    match declared:
        case Scalar():
            return _scalars().get(declared, ANY)
        case ListType():
            return list_of(_of(declared.item, above))
        case MapType():
            return map_of(STRING, _of(declared.value, above))
        case StructType() if declared.extra is None and declared not in above:
            below = (*above, declared)
            fields = {escaped(name): (name, _of(one.type, below)) for name, one in declared.fields.items()}
            return CelType(declared.name, fields={name: found for name, found in fields.items() if name})
        case _:
            # Some structs contain themselves. Quantities are here, too: the real controller reports the maps of them as
            # undefined fields, although expressions can read them.
            return ANY
