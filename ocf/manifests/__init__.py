"""Manifests that install an operator, derived from its declaration: for kustomize, as a Helm chart, as an OLM bundle.

Rendering is pure: the declaration, its components and the options determine every file.
"""

from typing import TYPE_CHECKING

from ocf.lazy_exports import lazy_exports
from ocf.manifests.formats import Format

if TYPE_CHECKING:
    from ocf.manifests.folder import NOTE, Difference, differences, is_generated
    from ocf.manifests.install_options import InstallOptions, Project
    from ocf.manifests.installation import Installation
    from ocf.manifests.rendering import Rendering, render

__all__ = [
    "NOTE",
    "Difference",
    "Format",
    "InstallOptions",
    "Installation",
    "Project",
    "Rendering",
    "differences",
    "is_generated",
    "render",
]

# The command line needs only the formats to print its help.
__getattr__ = lazy_exports(
    __name__,
    {
        "NOTE": "folder",
        "Difference": "folder",
        "differences": "folder",
        "is_generated": "folder",
        "InstallOptions": "install_options",
        "Project": "install_options",
        "Installation": "installation",
        "Rendering": "rendering",
        "render": "rendering",
    },
)
