"""The page of a running operator: its owners by trouble, each with its explanation, and what its reconciles did.

`ManagerOptions.page` switches it on; without it, nothing is recorded, loaded or served.
"""

from ocf.runtime.page.options import PageOptions

__all__ = ["PageOptions"]
