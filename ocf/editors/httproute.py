"""Editor of the spec of an HTTPRoute of the Gateway API."""

from __future__ import annotations

from typing import Final

from ocf.editors.editor import Editor
from ocf.editors.keyed_lists import KeyedList, require_name
from ocf.editors.model_values import own, require
from ocf.objects.third_party.lazy import HTTPRouteRule, HTTPRouteSpec, ParentReference

__all__ = ["HTTPRouteSpecEditor"]

_PARENTS: Final[KeyedList[HTTPRouteSpec, ParentReference]] = KeyedList(
    "parent_refs",
    key=lambda ref: (ref.group, ref.kind, ref.namespace or "", ref.name, ref.section_name or "", ref.port),
)
_HOSTNAMES: Final[KeyedList[HTTPRouteSpec, str]] = KeyedList("hostnames", key=lambda hostname: hostname)
_RULES: Final[KeyedList[HTTPRouteSpec, HTTPRouteRule]] = KeyedList("rules", key=lambda rule: rule.name)


class HTTPRouteSpecEditor(Editor[HTTPRouteSpec]):
    """Edits the spec of an HTTPRoute.

    Source: https://gateway-api.sigs.k8s.io/reference/spec/#httproutespec.

    Args:
        raw: The live spec.

    Example:
        >>> from ocf.objects.third_party.gateway import HTTPRouteSpec, ParentReference
        >>> spec = HTTPRouteSpecEditor(HTTPRouteSpec())
        >>> spec.ensure_parent_ref(ParentReference(name="public"))
        >>> spec.ensure_hostname("shop.example.com", "shop.example.com")
        >>> [parent.name for parent in spec.raw.parent_refs], spec.raw.hostnames
        (['public'], ['shop.example.com'])
    """

    __slots__ = ()

    def ensure_parent_ref(self, parent: ParentReference) -> None:
        """Add a parent unless the route attaches to it.

        Args:
            parent: The parent; a copy is stored. All its fields identify it.

        Raises:
            ConfigError: If the argument is not a parent reference.
        """
        _PARENTS.ensure(self._raw, parent)

    def remove_parent_ref(self, parent: ParentReference) -> None:
        """Remove a parent.

        Args:
            parent: The parent, with all fields that identify it.

        Raises:
            ConfigError: If the argument is not a parent reference.
        """
        _PARENTS.remove(self._raw, _PARENTS.key(own(self._raw, "parent_refs", parent)))

    def ensure_hostname(self, *hostnames: str) -> None:
        """Append host names that are missing.

        Args:
            hostnames: Host names of requests, `shop.example.com` or `*.example.com`.

        Raises:
            ConfigError: If a host name is not a string; then none of them is stored.
        """
        _HOSTNAMES.ensure(self._raw, *hostnames)

    def remove_hostname(self, *hostnames: str) -> None:
        """Remove host names; a route without any applies to all host names of its parents.

        Args:
            hostnames: The host names.

        Raises:
            ConfigError: If a host name is not a string.
        """
        _HOSTNAMES.remove(self._raw, *(require("hostnames", hostname, str) for hostname in hostnames))

    def ensure_rule(self, rule: HTTPRouteRule) -> None:
        """Add a rule or replace the first one of the same name.

        Args:
            rule: The rule; a copy is stored. It replaces the other one as a whole.

        Raises:
            ConfigError: If the argument is not a rule, or has no name.
        """
        require_name("rules", own(self._raw, "rules", rule).name)
        _RULES.ensure(self._raw, rule)

    def append_rule(self, rule: HTTPRouteRule) -> None:
        """Append a rule; it may have no name.

        Args:
            rule: The rule; a copy is stored.

        Raises:
            ConfigError: If the argument is not a rule.
        """
        self._raw.rules = [*(self._raw.rules or []), own(self._raw, "rules", rule)]

    def remove_rule(self, name: str) -> None:
        """Remove all rules with a name.

        Args:
            name: Name of the rule.

        Raises:
            ConfigError: If the name is not a string.
        """
        _RULES.remove(self._raw, require("rules", name, str))

    def remove_rules(self) -> None:
        """Remove all rules."""
        self._raw.rules = None
