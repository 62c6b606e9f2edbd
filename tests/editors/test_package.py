"""The package as a whole."""

import subprocess
import sys


def test_importing_the_room_loads_neither_the_client_nor_pydantic() -> None:
    """Both take far longer to import than the whole package; they come with the first model."""
    program = "import sys, ocf.editors; print([m for m in ('kubernetes', 'pydantic') if m in sys.modules])"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603 (ours)

    assert done.stdout.strip() == "[]"
