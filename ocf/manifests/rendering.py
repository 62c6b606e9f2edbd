"""Files of an installation in the three formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ocf.manifests.formats import Format
from ocf.manifests.helm import chart
from ocf.manifests.installation import Installation
from ocf.manifests.kustomize import kustomization, overlay
from ocf.manifests.olm import bundle

__all__ = ["Rendering", "render"]


@dataclass(frozen=True, slots=True)
class Rendering:
    """Rendered files.

    Args:
        generated: Path in the folder to text: files that are written anew each time.
        initial: Files that are written once and then belong to the user.
    """

    generated: Mapping[str, str]
    initial: Mapping[str, str] = field(default_factory=dict)


def render(installation: Installation, layout: Format) -> Rendering:
    """Render the files that install an operator.

    Args:
        installation: The operator and its options.
        layout: The format.

    Raises:
        ConfigError: If the operator cannot be installed in this format.
    """
    if layout is Format.HELM:
        return Rendering(chart(installation))
    if layout is Format.OLM:
        return Rendering(bundle(installation))
    return Rendering(kustomization(installation), overlay(installation))
