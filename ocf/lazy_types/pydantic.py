"""Types of pydantic, for annotations."""

from typing import TYPE_CHECKING

from ocf.lazy_types import lazy_types

if TYPE_CHECKING:
    from pydantic import *  # noqa: F403 (all types)
    from pydantic_core import *  # noqa: F403
else:
    __getattr__ = lazy_types("pydantic", "pydantic_core")
