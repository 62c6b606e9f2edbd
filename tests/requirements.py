"""Programs and built pages that some tests need, and which `OCF_REQUIRE` lists where leaving them out is a failure."""

import os
import re
from typing import NoReturn

import pytest

__all__ = ["leave_out"]


def leave_out(name: str, message: str) -> NoReturn:
    """Skip the test, or fail it if `OCF_REQUIRE` lists what it needs.

    Args:
        name: The name in `OCF_REQUIRE`.
        message: What is missing, and how to get it.
    """
    if name in re.split(r"[,\s]+", os.environ.get("OCF_REQUIRE", "")):
        pytest.fail(f"{message} (OCF_REQUIRE requires it)", pytrace=False)
    pytest.skip(message)
