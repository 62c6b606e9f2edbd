"""Entry point of `python -m ocf.testing.envtest`."""

import sys
from typing import Final

from ocf.testing.envtest.command import main

__all__: Final[list[str]] = []

if __name__ == "__main__":
    sys.exit(main())
