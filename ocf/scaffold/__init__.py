"""New projects from templates: an operator with its tests, manifests, image and CI, as a team would keep it.

Rendering is pure: the description of a project determines the text of every file. The commands of `ocf new` write them.
"""

from ocf.scaffold.locked_versions import closure, lock_file
from ocf.scaffold.operator_project import OperatorProject, render_operator

__all__ = ["OperatorProject", "closure", "lock_file", "render_operator"]
