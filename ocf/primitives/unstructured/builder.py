"""What the builders of objects of any kind have in common: they read the kind from the manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from ocf.editors.content import own_json
from ocf.errors import ConfigError, ManifestError
from ocf.objects import load_document, write_model
from ocf.primitives import builder
from ocf.primitives.kind import Kind, StatusT
from ocf.primitives.unstructured.model import Mutator, Unstructured, UnstructuredKind

if TYPE_CHECKING:
    from ocf.objects import Manifest

__all__ = ["AnyKindBuilder"]


class AnyKindBuilder(builder._Builder[Unstructured, Mutator, StatusT]):  # noqa: SLF001 (shared by the builders of this package)
    """Builder that reads the kind from the baseline.

    Args:
        base: The desired baseline: a manifest, a YAML text with one document, or a pydantic model of the user.
        cluster_scoped: Whether objects of the kind are cluster-scoped.
    """

    def __init__(self, base: Manifest | str | BaseModel, *, cluster_scoped: bool = False) -> None:
        # `build` reports a base that cannot be read, with all other problems.
        read: Any = base
        with suppress(ManifestError):
            read = _manifest(base)
        named = read if isinstance(read, Mapping) else {}
        api_version, kind = (str(named.get(field) or "") for field in ("apiVersion", "kind"))
        declared = UnstructuredKind(api_version, kind, "Unstructured", Mutator, cluster_scoped)
        super().__init__(read, declared)

    def _read_base(self, problems: list[str]) -> Manifest:
        if not isinstance(self._base, Mapping):
            return super()._read_base(problems)
        found = list(_problems_of(self._base, self._kind))
        if not found:
            return super()._read_base(problems)
        metadata = self._base.get("metadata") or {}
        problems.extend([*found, *(self._naming_problems(metadata) if isinstance(metadata, dict) else ())])
        return {}


def _problems_of(base: Mapping[str, Any], kind: Kind[Unstructured, Mutator]) -> Iterator[str]:
    """Yield the problems that a model would have reported."""
    if not kind.api_version:
        yield "object apiVersion cannot be empty"
    if not kind.name:
        yield "object kind cannot be empty"
    if not isinstance(base.get("metadata", {}), dict):
        yield f"metadata: must be a map, not of type {type(base['metadata']).__name__}"
    try:
        own_json(dict(base), ())
    except ConfigError as error:
        yield f"{kind.name}: {error}"


def _manifest(base: object) -> object:
    if isinstance(base, str):
        return load_document(base)
    return write_model(base) if isinstance(base, BaseModel) else base
