"""The rules for names, beyond what the corpus of HPAs asks."""

import pytest

from ocf.objects.name_validation import (
    NameRule,
    dns_label,
    dns_subdomain,
    dns_subdomain_prefix,
    label_value,
    path_segment,
    path_segment_prefix,
    qualified_name,
)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        pytest.param(dns_subdomain_prefix, "web-", id="the beginning of a name may end in a dash"),
        pytest.param(dns_subdomain_prefix, "a", id="or not"),
        pytest.param(path_segment_prefix, "..", id="the beginning of a path segment may be dots"),
        pytest.param(label_value, "", id="a label may be empty"),
        pytest.param(qualified_name, "x" * 63, id="63 bytes"),
        pytest.param(dns_label, "0", id="a label may be a digit"),
    ],
)
def test_what_is_allowed(rule: NameRule, text: str) -> None:
    assert rule(text) == []


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        pytest.param(dns_subdomain_prefix, "-", id="a dash is no beginning"),
        pytest.param(dns_subdomain_prefix, "", id="nothing is none"),
        pytest.param(path_segment, "..", id="dots are no path segment"),
        pytest.param(dns_subdomain, "a\n", id="a line ends no name"),
        pytest.param(label_value, "a\n", id="nor a label"),
        pytest.param(qualified_name, "ü" * 32, id="bytes are counted, not characters"),
    ],
)
def test_what_is_not(rule: NameRule, text: str) -> None:
    assert rule(text)
