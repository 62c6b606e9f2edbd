"""Headers of impersonation."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.cluster.client import Impersonation
from ocf.errors import ConfigError


@pytest.mark.parametrize(
    ("impersonation", "headers"),
    [
        pytest.param(Impersonation("jane"), [("Impersonate-User", "jane")], id="user"),
        pytest.param(
            Impersonation("system:serviceaccount:shop:web", uid="u-1"),
            [("Impersonate-User", "system:serviceaccount:shop:web"), ("Impersonate-Uid", "u-1")],
            id="uid",
        ),
        pytest.param(
            Impersonation("jane", groups=("b", "a, b")),
            [("Impersonate-User", "jane"), ("Impersonate-Group", "b"), ("Impersonate-Group", "a, b")],
            id="each group has its header, in order",
        ),
        pytest.param(
            Impersonation("jane", extra={"scopes": ("view", "edit"), "acme": ("x",)}),
            [
                ("Impersonate-User", "jane"),
                ("Impersonate-Extra-acme", "x"),
                ("Impersonate-Extra-scopes", "view"),
                ("Impersonate-Extra-scopes", "edit"),
            ],
            id="each extra value has its header",
        ),
    ],
)
def test_headers_are_those_of_client_go(impersonation: Impersonation, headers: list[tuple[str, str]]) -> None:
    assert list(impersonation.headers()) == headers


@pytest.mark.parametrize(
    ("key", "escaped"),
    [
        pytest.param("scopes", "scopes", id="letters"),
        pytest.param("Scopes", "scopes", id="upper case"),
        pytest.param("example.com/team", "example.com%2Fteam", id="slash"),
        pytest.param("a%b", "a%25b", id="percent sign"),
        pytest.param("a b:c", "a%20b%3Ac", id="space and colon"),
        pytest.param("ü", "%C3%BC", id="letter outside ASCII"),
        pytest.param("!#$&'*+-.^_`|~09", "!#$&'*+-.^_`|~09", id="all other characters of a header's name"),
    ],
)
def test_keys_of_extra_are_escaped_as_by_client_go(key: str, escaped: str) -> None:
    assert Impersonation("jane", extra={key: ("x",)}).headers()[1] == (f"Impersonate-Extra-{escaped}", "x")


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_the_server_reads_every_key(key: str) -> None:
    """It converts the name of the header to lower case, and decodes it then."""
    name, _ = Impersonation("jane", extra={key: ("x",)}).headers()[1]

    assert name.isascii()
    assert unquote(name.lower().removeprefix("impersonate-extra-")) == "".join(
        letter.lower() if letter.isascii() else letter for letter in key
    )


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        pytest.param({"user": ""}, "without a user", id="no user"),
        pytest.param({"user": "", "groups": ("system:masters",)}, "without a user", id="groups without a user"),
        pytest.param({"user": "jane", "extra": {"": ("x",)}}, "a key of extra is empty", id="empty key"),
        pytest.param({"user": "jane\r\nX: y"}, "Impersonate-User: .* control characters", id="user with a line break"),
        pytest.param({"user": "jane", "groups": ("a\x7f",)}, "Impersonate-Group: .* control", id="group with DEL"),
    ],
)
def test_what_cannot_be_impersonated_is_an_error(settings: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Impersonation(**settings)  # type: ignore[arg-type]  # rows of a table
