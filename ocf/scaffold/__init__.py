"""New projects from templates: an operator with its tests, manifests, image and CI, as a team would keep it.

Rendering is pure: the description of a project determines the text of every file, and so does a definition for a kind
of another project. The commands of `ocf new` write them.
"""

from ocf.scaffold.foreign_kind import ForeignKind, KindFiles, KindOptions, foreign_kinds, render_kind
from ocf.scaffold.locked_versions import closure, lock_file
from ocf.scaffold.operator_project import OperatorProject, render_operator

__all__ = [
    "ForeignKind",
    "KindFiles",
    "KindOptions",
    "OperatorProject",
    "closure",
    "foreign_kinds",
    "lock_file",
    "render_kind",
    "render_operator",
]
