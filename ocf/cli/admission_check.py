"""Check of webhook configurations and admission policies before they are written.

The embedded API server checks them, which compiles their expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ocf.cli.output import echo
from ocf.errors import ApiError, BadRequestError, ConfigError
from ocf.objects import ObjectKey

if TYPE_CHECKING:
    from ocf.objects import Manifest
    from ocf.schema.builtin import ApiResource
    from ocf_server import EmbeddedCluster
    from ocf_server.registry.policy_types import FindKind

__all__ = ["check_admission"]

_MANAGER: Final = "ocf"
_UNSUPPORTED: Final = "CEL expressions"
"""Part of the message of every error about an expression that the embedded cluster does not support."""


async def check_admission(manifests: Sequence[Manifest], definitions: Sequence[Manifest] = ()) -> None:
    """Check webhook configurations, and policies with their bindings.

    A note is printed about one whose expressions are not supported here, or have a field that the schema of their kind
    does not have.

    Args:
        definitions: CustomResourceDefinitions of the kinds that the policies may guard.

    Raises:
        ConfigError: If the API server would reject one; names each with the field and the place in the expression.
    """
    if not manifests:
        return
    from ocf_server import EmbeddedCluster

    embedded, problems, served = EmbeddedCluster(), [], None
    for manifest in manifests:
        try:
            await embedded.create(manifest, field_manager=_MANAGER, dry_run=True)
            if manifest["kind"].endswith("AdmissionPolicy"):
                served = served or await _served(embedded, definitions)
                _note_types(manifest, served)
        except BadRequestError as error:
            if _UNSUPPORTED not in error.message:
                problems.append(str(error))
                continue
            name = f"{manifest['kind']} {manifest['metadata']['name']}"
            echo(f"note: the expressions of {name} are not checked: {error.message}", color="yellow", err=True)
        except ApiError as error:
            problems.append(str(error))
    if problems:
        raise ConfigError("\n".join(f"the API server would reject {problem}" for problem in problems))


async def _served(embedded: EmbeddedCluster, definitions: Sequence[Manifest]) -> FindKind:
    """Return what finds the kinds of policies: those that are built in, and those of definitions."""
    from ocf.schema.builtin import builtin_plural
    from ocf_server.apiextensions.served_kinds import established

    custom: dict[tuple[str, str, str], ApiResource] = {}
    for definition in definitions:
        with suppress(ApiError):  # of a kind that is only used, and whose definition is not checked here
            stored = await embedded.apply(definition, field_manager=_MANAGER, force=True)
            found = established(await embedded.get(ObjectKey.of(stored)))
            custom |= {(one.group, one.version, one.plural): one for one in found}
    return lambda *named: custom.get(named) or builtin_plural(*named)


def _note_types(policy: Manifest, find: FindKind) -> None:
    from ocf_server.registry.policy_types import type_warnings

    for found in type_warnings(policy, find):
        place = f"{policy['kind']} {policy['metadata']['name']}: {found['fieldRef']}"
        # The other lines repeat the expression.
        problems = "; ".join(line for line in found["warning"].splitlines() if not line.startswith(" | "))
        echo(f"note: {place}: {problems}", color="yellow", err=True)
