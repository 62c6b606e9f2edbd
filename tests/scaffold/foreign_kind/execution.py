"""Models of a schema as classes: the source is rendered and executed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import count
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from ocf.scaffold.foreign_kind.python_source import module_source
from ocf.scaffold.foreign_kind.schema_reader import read_schema

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["compiled"]

_NUMBERS: Final = count()


def compiled(kind: str, schema: Mapping[str, Any]) -> type[BaseModel]:
    """Return the class of the objects of a kind."""
    models = read_schema(kind, schema)
    module = ModuleType(f"compiled_{next(_NUMBERS)}")
    # pydantic looks the names of annotations up in the module of the class.
    sys.modules[module.__name__] = module
    try:
        exec(compile(module_source(models, ["Models."]), module.__name__, "exec"), vars(module))  # noqa: S102 (ours)
    finally:
        del sys.modules[module.__name__]
    found: type[BaseModel] = vars(module)[models[-1].name]
    return found
