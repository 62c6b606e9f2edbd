"""Names of a custom resource, and what the API server rejects of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from ocf.errors import FieldProblem
from ocf.objects import Manifest
from ocf.objects.name_validation import NameRule, api_group, dns_1035_label, dns_subdomain, kind_name

__all__ = ["name_problems", "resource_names"]


def resource_names(kind: str, plural: str, short_names: Sequence[str] = (), categories: Sequence[str] = ()) -> Manifest:
    """Return the names of a resource as its definition has them.

    Args:
        plural: Plural name; empty derives it from the kind.
        short_names: Short names for `kubectl`.
        categories: Categories for `kubectl get`.
    """
    more = {"shortNames": [*short_names], "categories": [*categories]}
    return {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": plural or _plural(kind),
        "singular": kind.lower(),
        **{key: value for key, value in more.items() if value},
    }


def _plural(kind: str) -> str:
    """Derive a plural like Kubernetes' `UnsafeGuessKindToResource`."""
    name = kind.lower()
    if name.endswith("s"):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"


def name_problems(
    group: str,
    versions: Iterable[str],
    *,
    kind: str,
    plural: str,
    short_names: Sequence[str],
    categories: Sequence[str],
) -> Iterator[FieldProblem]:
    """Yield what the API server would reject of the names of a resource, by the argument that has the name.

    Args:
        versions: Names of the versions.
        kind: The kind; if it is empty there are no versions, and nothing is checked.
        plural: See `resource_names`.
        short_names: See `resource_names`.
        categories: See `resource_names`.
    """
    if not kind:
        return
    lists = {"short_names": short_names, "categories": categories}
    texts = {field: names for field, names in lists.items() if isinstance(names, str)}
    yield from (
        FieldProblem(field, f'must be a list of names, such as ["{text}"], not a text') for field, text in texts.items()
    )
    yield from _invalid("group", group, api_group)
    yield from chain.from_iterable(_invalid("version", version, dns_1035_label) for version in versions)
    wrong = list(_invalid("kind", kind, kind_name)) or list(_invalid("kind", f"{kind}List", kind_name))
    yield from wrong
    names = resource_names(kind, plural)
    if plural or not wrong:
        found = list(_invalid("plural", names["plural"], dns_1035_label))
        yield from found or (() if api_group(group) else _invalid("name", f"{names['plural']}.{group}", dns_subdomain))
    for field in (one for one in lists if one not in texts):
        yield from chain.from_iterable(_invalid(field, name, dns_1035_label) for name in lists[field])


def _invalid(argument: str, name: str, rule: NameRule) -> Iterator[FieldProblem]:
    yield from (FieldProblem(argument, f'invalid value "{name}": {problem}') for problem in rule(name))
