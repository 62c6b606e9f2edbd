"""Validation of CustomResourceDefinitions.

Only common mistakes are checked; the texts are those of a real API server. A real API server moves values that are the
same in all versions to a common field, and reports errors for that field (`spec.validation`, `spec.subresources`),
although it is not in the manifest.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ocf.errors import FieldProblem
from ocf.objects import Manifest
from ocf.objects.go_strings import go_quoted
from ocf.objects.name_validation import api_group, dns_1035_label, kind_name
from ocf_server.api.cel_usage import has_rules
from ocf_server.api.status_errors import go_json
from ocf_server.apiextensions.api_approval import ANNOTATION, approval_of
from ocf_server.apiextensions.crd_status import is_established
from ocf_server.apiextensions.formats import is_supported
from ocf_server.apiextensions.structural_schema import schema_problems

__all__ = ["definition_problems", "format_warnings"]

_Spec = Mapping[str, Any]

_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")


def definition_problems(definition: Manifest, live: Manifest | None) -> list[FieldProblem]:
    """Validate a CustomResourceDefinition.

    Args:
        definition: The CustomResourceDefinition, defaulted.
        live: The live one; None for a new one.

    Returns:
        The violations; empty if it is valid.

    Raises:
        BadRequestError: If its rules use a feature of CEL that the embedded cluster does not support.
    """
    spec = definition["spec"]
    problems = [
        *(_name_problems(definition) if live is None else ()),
        *_group_problems(spec),
        *_version_problems(spec),
        *_names_problems(spec["names"]),
        *_body_problems(spec),
        *_conversion_problems(spec),
        *_stored_problems(definition),
        *_approval_problems(definition, live),
        *(_immutable_problems(spec, live) if live is not None else ()),
    ]
    if spec.get("preserveUnknownFields"):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        problems.append(FieldProblem("spec.preserveUnknownFields", f"Invalid value: true: {text}"))
    return problems


def _invalid(path: str, value: Any, text: str) -> FieldProblem:
    return FieldProblem(path, f"Invalid value: {go_json(value)}: {text}")


def _required(path: str, text: str = "") -> FieldProblem:
    return FieldProblem(path, f"Required value: {text}" if text else "Required value")


def _name_problems(definition: Manifest) -> Iterator[FieldProblem]:
    name, spec = definition["metadata"].get("name", ""), definition["spec"]
    if name != f"{spec['names'].get('plural', '')}.{spec.get('group', '')}":
        yield _invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _group_problems(spec: _Spec) -> Iterator[FieldProblem]:
    group, scope = spec.get("group", ""), spec.get("scope", "")
    if not group:
        yield _required("spec.group")
    elif faults := api_group(group):
        yield _invalid("spec.group", group, ",".join(faults))
    if not scope:
        yield _required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        text = f'Unsupported value: {go_json(scope)}: supported values: "Cluster", "Namespaced"'
        yield FieldProblem("spec.scope", text)


def _version_problems(spec: _Spec) -> Iterator[FieldProblem]:
    versions = spec.get("versions") or []
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        if _schema(version) is None:
            yield _required(f"{path}.schema.openAPIV3Schema")
        for fault in dns_1035_label(version.get("name", "")):
            yield _invalid(f"{path}.name", version.get("name", ""), fault)
        warning = version.get("deprecationWarning")
        if warning is not None and not version.get("deprecated"):
            yield _invalid(f"{path}.deprecationWarning", warning, "can only be set for deprecated versions")
    names = [version.get("name") for version in versions]
    if len(set(names)) != len(names):
        yield _invalid("spec.versions", _shown(versions), "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        text = "must have exactly one version marked as storage version"
        yield _invalid("spec.versions", _shown(versions), text)
    if versions:
        # The deprecated field `spec.version` has the name of the first version, and is checked, too.
        for fault in dns_1035_label(versions[0].get("name", "")):
            yield _invalid("spec.version", versions[0].get("name", ""), fault)


def _shown(versions: list[Any]) -> list[dict[str, Any]]:
    """Return versions in the form of error messages, without the fields that a real API server moves out of them."""
    rest = ("Schema", "Subresources", "AdditionalPrinterColumns", "SelectableFields")
    return [
        {
            "Name": version.get("name", ""),
            "Served": bool(version.get("served")),
            "Storage": bool(version.get("storage")),
            "Deprecated": bool(version.get("deprecated")),
            "DeprecationWarning": version.get("deprecationWarning"),
            **dict.fromkeys(rest),
        }
        for version in versions
    ]


def _names_problems(names: Mapping[str, Any]) -> Iterator[FieldProblem]:
    for field in ("plural", "singular", "kind", "listKind"):
        if not names.get(field):
            yield _required(f"spec.names.{field}")
    for field in ("plural", "singular"):
        # A missing name has been reported above.
        for fault in dns_1035_label(names.get(field) or "a"):
            yield _invalid(f"spec.names.{field}", names[field], fault)
    for field in ("kind", "listKind"):
        for fault in kind_name(names.get(field) or "a"):
            yield _invalid(f"spec.names.{field}", names[field], fault)
    for field in ("shortNames", "categories"):
        yield from _word_problems(f"spec.names.{field}", names.get(field) or ())
    if names.get("kind") and names["kind"] == names.get("listKind"):
        yield _invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")


def _word_problems(path: str, words: Iterable[str]) -> Iterator[FieldProblem]:
    for index, word in enumerate(words):
        for fault in dns_1035_label(word):
            yield _invalid(f"{path}[{index}]", word, fault)


def _schema(version: Mapping[str, Any]) -> Any:
    return (version.get("schema") or {}).get("openAPIV3Schema")


def _body_problems(spec: _Spec) -> Iterator[FieldProblem]:
    """Check schemas, subresources, columns and selectable fields, with the paths that a real API server reports."""
    versions = spec.get("versions") or []
    for field, common, check in (
        ("schema", "spec.validation", _schema_problems),
        ("subresources", "spec.subresources", _subresource_problems),
        ("additionalPrinterColumns", "spec.additionalPrinterColumns", _column_problems),
        ("selectableFields", "spec.selectableFields", _selectable_problems),
    ):
        values = [version.get(field) for version in versions]
        if values and all(value == values[0] for value in values):
            yield from check(versions[0], common)
        else:
            for index, version in enumerate(versions):
                yield from check(version, f"spec.versions[{index}].{field}")


def _schema_problems(version: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    schema = _schema(version)
    if isinstance(schema, dict):
        where = f"{path}.openAPIV3Schema"
        if schema.get("nullable"):
            yield FieldProblem(f"{where}.nullable", "Forbidden: nullable cannot be true at the root")
        problems = schema_problems(schema, where)
        yield from problems
        if has_rules(schema):
            yield from _rule_problems(schema, where, sound=not problems)


def _rule_problems(schema: _Spec, path: str, *, sound: bool) -> list[FieldProblem]:
    from ocf_server.cel import rule_problems, rule_texts

    problems = rule_texts(schema, path)
    # The type check of expressions needs a valid schema.
    return problems if problems or not sound else rule_problems(schema, path)


def _subresource_problems(version: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    scale = (version.get("subresources") or {}).get("scale")
    if scale is None:
        return
    for field, root in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        value = scale.get(field)
        if not value:
            yield _required(f"{path}.scale.{field}")
        elif not value.startswith(f"{root}."):
            yield _invalid(f"{path}.scale.{field}", value, f"should be a json path under {root}")
    selector = scale.get("labelSelectorPath")
    if selector and not selector.startswith((".spec.", ".status.")):
        text = "should be a json path under either .spec or .status"
        yield _invalid(f"{path}.scale.labelSelectorPath", selector, text)


def _column_problems(version: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        where = f"{path}[{index}]"
        if not column.get("name"):
            yield _required(f"{where}.name")
        if not column.get("type"):
            yield _required(f"{where}.type", f"must be one of {','.join(_COLUMN_TYPES)}")
        elif column["type"] not in _COLUMN_TYPES:
            yield _invalid(f"{where}.type", column["type"], f"must be one of {','.join(_COLUMN_TYPES)}")
        if not column.get("jsonPath"):
            yield _required(f"{where}.JSONPath")
        elif not column["jsonPath"].startswith("."):
            yield _invalid(f"{where}.JSONPath", column["jsonPath"], "must be a simple json path starting with .")


def _selectable_problems(version: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    for index, item in enumerate(version.get("selectableFields") or ()):
        value = item.get("jsonPath", "")
        node: Any = _schema(version)
        for name in str(value).strip(".").split("."):
            known = node.get("properties") if node else None
            node = known.get(name) if known else None
        if not node:
            text = "is an invalid path: does not refer to a valid field"
            yield _invalid(f"{path}[{index}].jsonPath", value, text)


def _conversion_problems(spec: _Spec) -> Iterator[FieldProblem]:
    conversion = spec.get("conversion") or {}
    strategy = conversion.get("strategy", "")
    if strategy not in ("None", "Webhook"):
        text = f'Unsupported value: {go_json(strategy)}: supported values: "None", "Webhook"'
        yield FieldProblem("spec.conversion.strategy", text)
    if strategy == "Webhook":
        webhook = conversion.get("webhook") or {}
        if not webhook.get("clientConfig"):
            yield _required("spec.conversion.webhookClientConfig", "required when strategy is set to Webhook")
        if not webhook.get("conversionReviewVersions"):
            yield _required("spec.conversion.conversionReviewVersions")


def _stored_problems(definition: Manifest) -> Iterator[FieldProblem]:
    stored = (definition.get("status") or {}).get("storedVersions") or []
    versions = definition["spec"].get("versions") or []
    if not stored:
        yield _invalid("status.storedVersions", stored or None, "must have at least one stored version")
        return
    names = [version.get("name") for version in versions]
    for version in versions:
        if version.get("storage") and version["name"] not in stored:
            yield _invalid("status.storedVersions", stored, f"must have the storage version {version['name']}")
    for index, name in enumerate(stored):
        if name not in names:
            text = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            yield _invalid(f"status.storedVersions[{index}]", name, text)


def _approval_problems(definition: Manifest, live: Manifest | None) -> Iterator[FieldProblem]:
    found, before = approval_of(definition), approval_of(live) if live is not None else None
    # A state that was stored stays allowed, for controllers that only change the spec.
    if found is None or (before is not None and found.reason == before.reason):
        return
    path = f"metadata.annotations[{ANNOTATION}]"
    if found.reason == "MissingAnnotation":
        yield _required(path, found.message)
    elif found.reason == "InvalidAnnotation":
        yield _invalid(path, found.value, found.message)


def _immutable_problems(spec: _Spec, live: Manifest) -> Iterator[FieldProblem]:
    old = live["spec"]
    # Scope and kind concern stored objects, which there are none of before the kind is served.
    stored = [
        ("spec.scope", spec.get("scope"), old["scope"]),
        ("spec.names.kind", spec["names"].get("kind"), old["names"]["kind"]),
    ]
    for path, new, before in (
        *(stored if is_established(live) else ()),
        ("spec.group", spec.get("group"), old["group"]),
        ("spec.names.plural", spec["names"].get("plural"), old["names"]["plural"]),
    ):
        if new != before:
            yield _invalid(path, new, "field is immutable")


def format_warnings(definition: Manifest, live: Manifest | None) -> Iterator[str]:
    """Yield the warnings about formats that the API server does not validate, if the live definition lacks them.

    Example:
        >>> schema = {"openAPIV3Schema": {"properties": {"at": {"type": "string", "format": "moment"}}}}
        >>> print(*format_warnings({"spec": {"versions": [{"schema": schema}]}}, None))
        unrecognized format "moment"
    """
    known = set() if live is None else {*_unknown_formats(live)}
    yield from (f"unrecognized format {go_quoted(name)}" for name in _unknown_formats(definition) if name not in known)


def _unknown_formats(definition: Manifest) -> Iterator[str]:
    for version in definition["spec"].get("versions") or ():
        if schema := _schema(version):
            yield from _formats(schema)


def _formats(schema: Mapping[str, Any]) -> Iterator[str]:
    name = schema.get("format")
    if name and not is_supported(name, schema.get("type") or ""):
        yield name
    below = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    below += [
        schema.get("not"),
        *(each for junctor in ("allOf", "anyOf", "oneOf") for each in schema.get(junctor) or ()),
    ]
    for each in below:
        if isinstance(each, dict):
            yield from _formats(each)
