"""Manifests that install an operator, derived from its declaration: for kustomize, as a Helm chart, as an OLM bundle.

Rendering is pure: the declaration, its components and the options determine every file.
"""

from typing import TYPE_CHECKING

from ocf.lazy_exports import lazy_exports
from ocf.manifests.formats import Format

if TYPE_CHECKING:
    from ocf.manifests.folder import differences
    from ocf.manifests.install_options import InstallOptions
    from ocf.manifests.installation import Installation
    from ocf.manifests.rendering import render

__all__ = [
    "Format",
    "InstallOptions",
    "Installation",
    "differences",
    "render",
]

# The command line needs only the formats to print its help.
__getattr__ = lazy_exports(
    __name__,
    {
        "differences": "folder",
        "InstallOptions": "install_options",
        "Installation": "installation",
        "render": "rendering",
    },
)
