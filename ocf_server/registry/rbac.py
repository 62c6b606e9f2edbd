"""Role-based access control: which rules a user has, and whether one of them allows a request.

Source: `plugin/pkg/auth/authorizer/rbac` and `pkg/registry/rbac/validation` of Kubernetes 1.36. A ClusterRole with an
aggregation rule has the rules of the roles that it selects, without a controller that writes them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ocf.objects import Manifest
from ocf.objects.selectors import LabelSelector
from ocf_server.api.attributes import Attributes, Decision, forbidden_error
from ocf_server.api.users import MASTERS, User, account_of
from ocf_server.registry.storage import Kind, Storage

__all__ = ["ALL", "GROUP", "GrantedRule", "Rbac", "RoleNotFoundError", "Rule", "has_path"]

GROUP: Final = "rbac.authorization.k8s.io"
"""The API group of roles."""
ALL: Final = "*"
"""Any verb, group, resource or path in a rule."""

_ROLE, _CLUSTER_ROLE, _BINDING, _CLUSTER_BINDING = (
    (GROUP, kind) for kind in ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
)
_KINDS: Final[tuple[Kind, ...]] = (_ROLE, _CLUSTER_ROLE, _BINDING, _CLUSTER_BINDING)

Rule = Mapping[str, Any]
"""A rule of a role."""


class RoleNotFoundError(Exception):
    """A binding refers to a role that does not exist; the text is the API server's."""


@dataclass(frozen=True, slots=True)
class GrantedRule:
    """A rule that a user has.

    Args:
        reason: The binding and the role that it comes from.
    """

    rule: Rule
    reason: str


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules of a user in a namespace.

    Args:
        problems: Texts about roles that do not exist.
    """

    granted: tuple[GrantedRule, ...]
    problems: tuple[str, ...]


@dataclass(slots=True)
class Rbac:
    """Authorizes requests by the roles and bindings of a store.

    Args:
        store: The store of the roles and bindings.

    Attributes:
        impersonators: The users who have acted as others.
    """

    store: Storage
    impersonators: set[str] = field(default_factory=set, init=False, repr=False)
    _known: dict[tuple[str, tuple[str, ...], str], _Rules] = field(default_factory=dict, init=False, repr=False)
    _read_at: tuple[int, ...] = field(default=(), init=False, repr=False)

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        """Return whether a user may make a request."""
        if MASTERS in user.groups:
            return Decision(allowed=True)
        found = self._rules(user, attributes.namespace)
        for granted in found.granted:
            if _allows(granted.rule, attributes):
                return Decision(allowed=True, reason=f"RBAC: {granted.reason}")
        problems = found.problems
        listed = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        return Decision(allowed=False, reason=f"RBAC: {listed}" if problems else "")

    def require(self, user: User, attributes: Attributes) -> None:
        """Check that a user may make a request.

        Raises:
            ForbiddenError: If not.
        """
        decision = self.authorize(user, attributes)
        if not decision.allowed:
            raise forbidden_error(user, attributes, decision.reason)

    def rules_of(self, user: User, namespace: str) -> Sequence[Rule]:
        """Return the rules of a user in a namespace; those of the whole cluster for an empty one."""
        return [granted.rule for granted in self._rules(user, namespace).granted]

    def rules_of_role(self, reference: Mapping[str, Any], namespace: str) -> Sequence[Rule]:
        """Return the rules of a role.

        Args:
            reference: The `roleRef` of a binding.
            namespace: The namespace of the binding; empty for a ClusterRoleBinding.

        Raises:
            RoleNotFoundError: If it does not exist.
        """
        kind, name = str(reference.get("kind")), str(reference.get("name"))
        is_cluster_wide = kind == "ClusterRole"
        role = self.store.get((GROUP, kind), ("" if is_cluster_wide else namespace, name))
        if role is None:
            raise RoleNotFoundError(f'{kind.lower()}.{GROUP} "{name}" not found')
        return [*self._with_aggregated(role, {name})] if is_cluster_wide else role.get("rules") or []

    def _with_aggregated(self, role: Manifest, seen: set[str]) -> Iterator[Rule]:
        yield from role.get("rules") or ()
        for given in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ():
            selector = LabelSelector.of(given)
            for (_, name), other in self.store.objects(_CLUSTER_ROLE):
                if name not in seen and selector.matches(other["metadata"].get("labels") or {}):
                    seen.add(name)
                    yield from self._with_aggregated(other, seen)

    def _rules(self, user: User, namespace: str) -> _Rules:
        read_at = tuple(map(self.store.changed_at, _KINDS))
        if read_at != self._read_at:
            self._known, self._read_at = {}, read_at
        key = (user.username, user.groups, namespace)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._read(user, namespace)
        return known

    def _read(self, user: User, namespace: str) -> _Rules:
        granted: list[GrantedRule] = []
        problems: dict[str, None] = {}
        for home, binding in self._bindings(namespace):
            subject = _subject(user, binding.get("subjects") or (), home)
            if not subject:
                continue
            reference = binding["roleRef"]
            try:
                rules = self.rules_of_role(reference, home)
            except RoleNotFoundError as error:
                problems[str(error)] = None
                continue
            name = f"{binding['metadata']['name']}/{home}" if home else binding["metadata"]["name"]
            role = f'{reference["kind"]} "{reference["name"]}"'
            reason = f'allowed by {binding["kind"]} "{name}" of {role} to {subject}'
            granted += [GrantedRule(rule, reason) for rule in rules]
        return _Rules(tuple(granted), tuple(problems))

    def _bindings(self, namespace: str) -> Iterator[tuple[str, Manifest]]:
        """Yield bindings with their namespaces; none for those of the whole cluster."""
        yield from (("", binding) for _, binding in self.store.objects(_CLUSTER_BINDING))
        if namespace:
            yield from ((namespace, binding) for _, binding in self.store.objects(_BINDING, namespace))


def _subject(user: User, subjects: Iterable[Mapping[str, Any]], namespace: str) -> str:
    """Return the subject of a binding that a user is; empty if there is none."""
    for subject in subjects:
        kind, name = subject.get("kind"), str(subject.get("name"))
        if kind == "ServiceAccount":
            home = subject.get("namespace") or namespace
            if account_of(user.username) == (home, name):
                return f'ServiceAccount "{name}/{home}"'
        elif (kind == "User" and name == user.username) or (kind == "Group" and name in user.groups):
            return f'{kind} "{name}"'
    return ""


def _has(values: Sequence[str] | None, wanted: str) -> bool:
    return values is not None and (ALL in values or wanted in values)


def _allows(rule: Rule, attributes: Attributes) -> bool:
    if not _has(rule.get("verbs"), attributes.verb):
        return False
    if not attributes.resource:
        return any(has_path(path, attributes.path) for path in rule.get("nonResourceURLs") or ())
    resources, names = rule.get("resources") or (), rule.get("resourceNames")
    return (
        _has(rule.get("apiGroups"), attributes.group)
        and (
            _has(resources, attributes.full_resource)
            or bool(attributes.subresource and f"{ALL}/{attributes.subresource}" in resources)
        )
        and (not names or attributes.name in names)
    )


def has_path(pattern: str, path: str) -> bool:
    """Return whether a path of a rule, which may end with `*`, includes another path.

    Example:
        >>> has_path("/apis/*", "/apis/apps"), has_path("/apis", "/apis/apps")
        (True, False)
    """
    return pattern in (ALL, path) or (pattern.endswith(ALL) and path.startswith(pattern.rstrip(ALL)))
