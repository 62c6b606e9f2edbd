"""Types of pydantic, for annotations."""

from typing import TYPE_CHECKING

from ocf.lazy_types import lazy_types

if TYPE_CHECKING:
    from pydantic import *  # noqa: F403 (all types) # pyright: ignore[reportWildcardImportFromLibrary]
    from pydantic_core import *  # noqa: F403 # pyright: ignore[reportWildcardImportFromLibrary]
else:
    __getattr__ = lazy_types("pydantic", "pydantic_core")
