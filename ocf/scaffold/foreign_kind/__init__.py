"""Kinds of other projects from their CustomResourceDefinitions: typed models, a declaration, and tests.

Rendering is pure: a definition determines the text of every file.
"""

from ocf.scaffold.foreign_kind.definition import ForeignKind, foreign_kinds
from ocf.scaffold.foreign_kind.project import KindFiles, KindOptions, render_kind

__all__ = ["ForeignKind", "KindFiles", "KindOptions", "foreign_kinds", "render_kind"]
