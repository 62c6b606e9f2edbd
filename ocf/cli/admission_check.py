"""Check of webhook configurations and admission policies before they are written.

The embedded API server checks them, which compiles their expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ocf.cli.output import echo
from ocf.errors import ApiError, BadRequestError, ConfigError

if TYPE_CHECKING:
    from ocf.objects import Manifest

__all__ = ["check_admission"]

_MANAGER: Final = "ocf"
_UNSUPPORTED: Final = "CEL expressions"
"""Part of the message of every error about an expression that the embedded cluster does not support."""


async def check_admission(manifests: Sequence[Manifest]) -> None:
    """Check webhook configurations, and policies with their bindings.

    A note is printed about one whose expressions are not supported here.

    Raises:
        ConfigError: If the API server would reject one; names each with the field and the place in the expression.
    """
    if not manifests:
        return
    from ocf_server import EmbeddedCluster

    embedded, problems = EmbeddedCluster(), []
    for manifest in manifests:
        try:
            await embedded.create(manifest, field_manager=_MANAGER, dry_run=True)
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
