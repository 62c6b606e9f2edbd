"""Formats of long texts: each is decided at once, because one request must not hold up all others."""

import pytest

from ocf_server.apiextensions.formats import is_of_format

MANY = 100_000


@pytest.mark.parametrize(
    ("name", "text", "valid"),
    [
        # With a pattern that tries each way to divide the text, these take hours: the time limit of tests ends them.
        ("duration", "1" * MANY, False),
        ("duration", "1" * MANY + " week", True),
        ("email", " " * MANY, False),
        ("email", "\t" * MANY + "a@b" + " " * MANY, True),
        ("email", "a " * MANY, False),
        ("email", "a " * MANY + "<a@b>", True),
    ],
)
def test_the_format_of_a_long_text(name: str, text: str, valid: bool) -> None:
    assert is_of_format(text, name) is valid
