"""One version of a CustomResourceDefinition, with what the declaration of its kind needs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.objects.manifest import version_order
from ocf.objects.name_validation import api_group, dns_1035_label, kind_name, qualified_name
from ocf.scaffold.foreign_kind.decoding import decode_schema, decode_spec
from ocf.scaffold.foreign_kind.names import module_name

__all__ = ["ForeignKind", "foreign_kinds"]

_DEFINITION: Final = "CustomResourceDefinition"
_READY_COLUMN: Final = re.compile(r"""conditions\[\?\(\s*@\.type\s*==\s*['"]([^'"]+)['"]\s*\)\]\.status""")
_READY: Final = ("Ready", "Available", "Healthy", "Programmed", "Accepted", "Established", "Succeeded")
"""Types of conditions that mean that an object works, most common first."""
_OTHERS: Final = frozenset(
    {"Degraded", "Deleting", "Failed", "Failing", "Paused", "Progressing", "Reconciling", "Stalled", "Suspended"}
)
"""Types of conditions that mean anything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKind:
    """A custom resource of another project.

    Args:
        group: API group.
        version: API version.
        cluster_scoped: Whether its objects are cluster-scoped.
        schema: Its structural schema.
        ready: Type of the condition by which its status is judged; empty if the status has no conditions.

    Raises:
        ConfigError: If the API server would reject one of the names, or a keyword of the schema has a value of another
            type; the message lists every problem with a name.
    """

    group: str
    version: str
    kind: str
    cluster_scoped: bool
    schema: Mapping[str, Any]
    ready: str

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise ConfigError("; ".join(problems))
        schema = decode_schema(self.schema, "schema.openAPIV3Schema")
        if schema.get("type") != "object":
            raise ConfigError(f"schema.openAPIV3Schema.type: must be object at the root, got {schema.get('type')!r}")
        object.__setattr__(self, "schema", schema)

    def _problems(self) -> Iterator[str]:
        """Yield what the API server rejects; the code that is generated has these names in it."""
        yield from _named("spec.group", self.group, api_group(self.group))
        yield from _named("spec.versions[].name", self.version, dns_1035_label(self.version))
        yield from _named("spec.names.kind", self.kind, _kind_problems(self.kind))
        if self.ready:
            yield from _named("ready", self.ready, qualified_name(self.ready))

    @property
    def api_version(self) -> str:
        """Group and version."""
        return f"{self.group}/{self.version}"


def foreign_kinds(
    manifests: Sequence[Manifest], *, kinds: Sequence[str] = (), version: str = ""
) -> tuple[ForeignKind, ...]:
    """Return the kinds of the CustomResourceDefinitions among manifests.

    Args:
        manifests: Manifests; others than definitions are passed over, and Lists are opened.
        kinds: The kinds to return; empty for all.
        version: The version of each; empty for the version that kubectl prefers: the highest one that is served, and
            stable before beta before alpha.

    Returns:
        The kinds, in the order of the manifests.

    Raises:
        ConfigError: If there is no definition, one of them has no schema of the version, a kind is not there, or two
            kinds would be one module.

    Example:
        >>> version = {"name": "v1", "served": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        >>> names = {"kind": "Cache", "plural": "caches"}
        >>> spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
        >>> (found,) = foreign_kinds([{"kind": "CustomResourceDefinition", "spec": spec}])
        >>> found.api_version, found.kind, found.ready
        ('example.com/v1', 'Cache', '')
    """
    found = [each for each in _opened(manifests) if each.get("kind") == _DEFINITION]
    if not found:
        seen = ", ".join(dict.fromkeys(str(each.get("kind")) for each in manifests)) or "nothing"
        raise ConfigError(f"expected the manifest of a CustomResourceDefinition, got {seen}")
    names = dict.fromkeys(_kind_of(each) for each in found)
    if missing := [kind for kind in kinds if kind not in names]:
        raise ConfigError(f"--kind: {', '.join(missing)} is not among the definitions: {', '.join(names)}")
    chosen: dict[str, Manifest] = {}
    for each in found:
        module = module_name(_kind_of(each))
        if kinds and _kind_of(each) not in kinds:
            continue
        if _full_name(other := chosen.get(module, each)) != _full_name(each):
            raise ConfigError(f"{_full_name(other)} and {_full_name(each)} would both be the module {module}; pass one")
        chosen[module] = each
    return tuple(_read(each, version) for each in chosen.values())


def _full_name(definition: Manifest) -> str:
    return f"{_kind_of(definition)} of {_below(definition, 'spec').get('group')}"


def _opened(manifests: Sequence[Manifest]) -> Iterator[Manifest]:
    for manifest in manifests:
        if isinstance(items := manifest.get("items"), list):
            yield from _opened([item for item in items if isinstance(item, dict)])
        else:
            yield manifest


def _kind_of(definition: Manifest) -> str:
    names = _below(_below(definition, "spec"), "names")
    kind = names.get("kind")
    if not isinstance(kind, str) or _kind_problems(kind):
        name = _below(definition, "metadata").get("name")
        raise ConfigError(f"{_DEFINITION} {name}: spec.names.kind: must be a name such as Cache, got {kind!r}")
    return kind


def _below(manifest: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = manifest.get(name)
    return found if isinstance(found, Mapping) else {}


def _read(definition: Manifest, wanted: str) -> ForeignKind:
    kind = _kind_of(definition)
    if str(definition.get("apiVersion", "")).endswith("/v1beta1"):
        raise ConfigError(
            f"{_DEFINITION} of {kind}: apiVersion: must be apiextensions.k8s.io/v1, got {definition['apiVersion']}"
        )
    spec = decode_spec(definition["spec"], f"{_DEFINITION} of {kind}: spec")
    place = f"{_DEFINITION} {spec['names'].get('plural')}.{spec.get('group')}"
    versions = {each.get("name", ""): each for each in spec.get("versions") or () if each.get("served")}
    if not versions:
        raise ConfigError(f"{place}: spec.versions: no version is served")
    version = wanted or min(versions, key=version_order)
    if version not in versions:
        raise ConfigError(f"--version: {place} serves {', '.join(versions)}, got {version}")
    schema = (versions[version].get("schema") or {}).get("openAPIV3Schema")
    if schema is None:
        raise ConfigError(f"{place}: spec.versions[{version}].schema.openAPIV3Schema: required value")
    try:
        return ForeignKind(
            group=spec.get("group", ""),
            version=version,
            kind=kind,
            cluster_scoped=spec.get("scope") == "Cluster",
            schema=schema,
            ready=_ready_condition(versions[version], schema),
        )
    except ConfigError as error:
        raise ConfigError(f"{_DEFINITION} of {kind}: {error}") from None


def _named(field: str, value: str, problems: Sequence[str]) -> Iterator[str]:
    yield from (f"{field}: {value!r}: {problem}" for problem in problems)


def _kind_problems(kind: str) -> list[str]:
    # The API server checks the lower case of the kind, to which also a sign outside of ASCII may lead: U+212A is a k.
    return kind_name(kind) if kind.isascii() else ["must consist of characters of ASCII"]


def _ready_condition(version: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Return the condition by which the columns of the definition show that an object is ready, or `Ready`."""
    status = (schema.get("properties") or {}).get("status") or {}
    conditions = (status.get("properties") or {}).get("conditions") or {}
    known = (conditions.get("items") or {}).get("properties") or {}
    if not {"type", "status"} <= set(known):
        return ""
    shown = [
        match[1]
        for column in version.get("additionalPrinterColumns") or ()
        if (match := _READY_COLUMN.search(column.get("jsonPath", "")))
        and match[1] not in _OTHERS
        and not qualified_name(match[1])
    ]
    return next((name for name in _READY if name in shown), (shown or [_READY[0]])[0])
