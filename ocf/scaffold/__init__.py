"""New projects from templates: an operator with its tests, manifests, image and CI, as a team would keep it.

Rendering is pure: the description of a project determines the text of every file, and so does a definition for a kind
of another project. The commands of `ocf new` write them.
"""

from ocf.scaffold.foreign_kind import KindOptions, foreign_kinds, render_kind
from ocf.scaffold.operator_project import OperatorProject, render_operator

__all__ = [
    "KindOptions",
    "OperatorProject",
    "foreign_kinds",
    "render_kind",
    "render_operator",
]
