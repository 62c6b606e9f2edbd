"""Validation of names, labels and path segments, with the messages of the API server.

Each rule is a function that returns the problems of a text. The API server counts bytes, although its older rules call
them characters.
"""

import re
from collections.abc import Callable
from typing import Final, TypeAlias

__all__ = [
    "NameRule",
    "api_group",
    "config_key",
    "dns_1035_label",
    "dns_label",
    "dns_label_prefix",
    "dns_subdomain",
    "dns_subdomain_prefix",
    "kind_name",
    "label_value",
    "path_segment",
    "path_segment_prefix",
    "qualified_name",
    "wildcard_subdomain",
]

NameRule: TypeAlias = Callable[[str], list[str]]
"""Returns the problems of a text, one sentence each; empty if the text is valid."""

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_PART: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

_is_label: Final = re.compile(_LABEL).fullmatch
_is_label_1035: Final = re.compile(_LABEL_1035).fullmatch
_is_subdomain: Final = re.compile(_SUBDOMAIN).fullmatch
_is_wildcard: Final = re.compile(rf"\*\.{_SUBDOMAIN}").fullmatch
_is_part: Final = re.compile(_PART).fullmatch
_CONFIG_KEY: Final = "[-._a-zA-Z0-9]+"
_is_config_key: Final = re.compile(_CONFIG_KEY).fullmatch

_LONGEST_LABEL: Final = 63
_LONGEST_SUBDOMAIN: Final = 253
_ENDS: Final = "must start and end with an alphanumeric character"
_RULE: Final = "regex used for validation is"
_NO_LABEL: Final = (
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and {_ENDS} "
    f"(e.g. 'my-name',  or '123-abc', {_RULE} '{_LABEL}')"
)
_NO_LABEL_1035: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    f"and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', {_RULE} '{_LABEL_1035}')"
)
_NO_SUBDOMAIN: Final = (
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and {_ENDS} "
    f"(e.g. 'example.com', {_RULE} '{_SUBDOMAIN}')"
)
_WILDCARD: Final = rf"\*\.{_SUBDOMAIN}"
_NO_WILDCARD: Final = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character "
    f"(e.g. '*.example.com', {_RULE} '{_WILDCARD}')"
)
_NO_PART: Final = (
    f"must consist of alphanumeric characters, '-', '_' or '.', and {_ENDS} "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', {_RULE} '{_PART}')"
)
_NO_VALUE: Final = (
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and {_ENDS} "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', {_RULE} '({_PART})?')"
)
_NO_CONFIG_KEY: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    f"(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', {_RULE} '{_CONFIG_KEY}')"
)
_EMPTY: Final = "must be non-empty"


def dns_label(text: str) -> list[str]:
    """Return the problems of a DNS label, such as the name of a container or a namespace."""
    found = _too_long(text, _LONGEST_LABEL, "characters")
    if not _is_label(text):
        found.append("must not contain dots" if _is_subdomain(text) else _NO_LABEL)
    return found


def dns_1035_label(text: str) -> list[str]:
    """Return the problems of an RFC 1035 label, which starts with a letter, such as the plural of a kind."""
    found = _too_long(text, _LONGEST_LABEL, "characters")
    if not _is_label_1035(text):
        found.append(_NO_LABEL_1035)
    return found


def kind_name(text: str) -> list[str]:
    """Return the problems of a kind, which is an RFC 1035 label but for upper case letters."""
    return [f"may have mixed case, but should otherwise match: {each}" for each in dns_1035_label(text.lower())]


def dns_subdomain(text: str) -> list[str]:
    """Return the problems of a DNS subdomain, such as the name of most objects."""
    return _subdomain(text, "characters")


def api_group(text: str) -> list[str]:
    """Return the problems of the API group of a custom resource, which is a domain with a dot."""
    return dns_subdomain(text) or ([] if "." in text else ["should be a domain with at least one dot"])


def wildcard_subdomain(text: str) -> list[str]:
    """Return the problems of a DNS subdomain whose first label is `*`, such as the host of an Ingress."""
    found = _too_long(text, _LONGEST_SUBDOMAIN, "characters")
    if not _is_wildcard(text):
        found.append(_NO_WILDCARD)
    return found


def path_segment(text: str) -> list[str]:
    """Return the problems of a segment of a URL path."""
    return [f"may not be '{text}'"] if text in {".", ".."} else path_segment_prefix(text)


def path_segment_prefix(text: str) -> list[str]:
    """Return the problems of the prefix of a segment of a URL path."""
    return [f"may not contain '{character}'" for character in "/%" if character in text]


def qualified_name(text: str) -> list[str]:
    """Return the problems of a name with an optional domain before a slash, such as the key of a label."""
    head, *rest = text.split("/")
    if len(rest) > 1:
        return [
            f"a valid label key {_NO_PART} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    found = []
    name = rest[0] if rest else head
    if rest:
        wrong = _subdomain(head, "bytes") if head else [_EMPTY]
        found += [f"prefix part {each}" for each in wrong]
    if name:
        found += [f"name part {each}" for each in _too_long(name, _LONGEST_LABEL)]
    else:
        found.append(f"name part {_EMPTY}")
    if not _is_part(name):
        found.append(f"name part {_NO_PART}")
    return found


def label_value(text: str) -> list[str]:
    """Return the problems of the value of a label."""
    found = _too_long(text, _LONGEST_LABEL)
    if text and not _is_part(text):
        found.append(_NO_VALUE)
    return found


def config_key(text: str) -> list[str]:
    """Return the problems of a key in the entries of a ConfigMap or a Secret, which becomes the name of a file."""
    found = _too_long(text, _LONGEST_SUBDOMAIN, "characters")
    if not _is_config_key(text):
        found.append(_NO_CONFIG_KEY)
    if text in (".", ".."):
        found.append(f"must not be '{text}'")
    elif text.startswith(".."):
        found.append("must not start with '..'")
    return found


def dns_label_prefix(text: str) -> list[str]:
    """Return the problems of the prefix of a DNS label, which may end with a dash."""
    return dns_label(_without_dash(text))


def dns_subdomain_prefix(text: str) -> list[str]:
    """Return the problems of the prefix of a DNS subdomain, which may end with a dash."""
    return dns_subdomain(_without_dash(text))


def _without_dash(text: str) -> str:
    # The API server replaces the last two characters by one letter.
    return f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text


def _subdomain(text: str, unit: str) -> list[str]:
    found = _too_long(text, _LONGEST_SUBDOMAIN, unit)
    if not _is_subdomain(text):
        found.append(_NO_SUBDOMAIN)
    return found


def _too_long(text: str, limit: int, unit: str = "bytes") -> list[str]:
    fits = len(text) <= limit and (text.isascii() or len(text.encode(errors="surrogatepass")) <= limit)
    return [] if fits else [f"must be no more than {limit} {unit}"]
