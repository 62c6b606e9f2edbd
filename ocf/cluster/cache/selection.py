"""`Selection`: which objects of a kind a cache lists, watches and holds."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, TypeVar

from ocf.cluster.cache.keys import NamespacedName
from ocf.cluster.protocol import ListOptions, WatchOptions
from ocf.errors import ConfigError, ManifestError
from ocf.objects import Manifest
from ocf.objects.name_validation import dns_label
from ocf.objects.paths import get_field, parse_path
from ocf.objects.selectors import FieldTerm, LabelSelector, parse_field_selector

__all__ = ["Selection", "named", "one_object"]

Options = TypeVar("Options", ListOptions, WatchOptions)
_NAME: Final = "metadata.name"
_SPECIAL: Final = re.compile(r"[\\,=]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which objects of a kind a cache lists, watches and holds.

    What is not selected is not hidden from reads by name: such an object is read from the API server, and watched alone
    from then on. A list shows what is selected, and what is watched alone. The selectors are evaluated by the API
    server, so other objects are not sent at all.

    Args:
        label_selector: A label selector, `app=web,tier in (front,back)`; empty for all.
        field_selector: A field selector, `spec.nodeName=worker-1`; the API server knows which fields a kind can be
            selected by. Empty for all.
        namespaces: Only these namespaces; empty for all.
        metadata_only: Hold only the metadata of an object until it is read by name. A list that needs more than
            metadata has all of them held as a whole from then on.
        by_name: List and watch nothing but the objects that are read by name, each alone. From the first list on, or
            from more than 50 such objects on, all of the kind are listed and held, until no more than 25 are read.

    Raises:
        ConfigError: If a selector or a namespace is invalid, or `by_name` is combined with selectors or namespaces.

    Example:
        >>> ours = Selection(label_selector="app.kubernetes.io/managed-by=shop-operator")
        >>> ours.selects({"metadata": {"name": "login", "labels": {"app.kubernetes.io/managed-by": "shop-operator"}}})
        True
    """

    label_selector: str = ""
    field_selector: str = ""
    namespaces: Collection[str] = ()
    metadata_only: bool = False
    by_name: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.namespaces, str):
            raise ConfigError(
                f'a selection needs a list of namespaces, such as ["{self.namespaces}"], not a text: '
                f'got "{self.namespaces}"'
            )
        object.__setattr__(self, "namespaces", tuple(sorted({*self.namespaces})))
        problems = [f'namespace "{one}": {problem}' for one in self.namespaces for problem in dns_label(one)]
        try:
            LabelSelector.parse(self.label_selector)
        except ManifestError as error:
            problems.append(f'label_selector "{self.label_selector}": {error}')
        try:
            for term in parse_field_selector(self.field_selector):
                parse_path(term.path)
        except (ManifestError, ConfigError) as error:
            problems.append(f'field_selector "{self.field_selector}": {error}')
        if self.by_name and (self.label_selector or self.field_selector or self.namespaces):
            problems.append(
                "by_name lists nothing, or all of the kind: leave out the selectors and the namespaces, or by_name"
            )
        if problems:
            raise ConfigError(f"invalid selection of a cache: {'; '.join(problems)}")

    @property
    def selects_all(self) -> bool:
        """Whether all objects of the kind are listed."""
        return not (self.label_selector or self.field_selector or self.namespaces or self.by_name)

    @property
    def one_object(self) -> bool:
        """Whether it selects an object by its name."""
        _, terms = _parsed(self.label_selector, self.field_selector)
        return any(one.path == _NAME and one.operator == "=" for one in terms)

    def selects(self, live: Manifest) -> bool | None:
        """Return whether an object is selected; None if only the API server knows.

        Args:
            live: The object as the API server has stored it.
        """
        metadata = live["metadata"]
        if self.namespaces and (metadata.get("namespace") or "") not in self.namespaces:
            return False
        labels, terms = _parsed(self.label_selector, self.field_selector)
        if not labels.matches(metadata.get("labels") or {}):
            return False
        known = True
        for term in terms:
            value = get_field(live, parse_path(term.path))
            if not isinstance(value, str):
                # What a field without a value counts as, and a number or a bool as text, differs between kinds.
                known = False
            elif (value == term.value) is not (term.operator == "="):
                return False
        return True if known else None

    def may_select(self, name: NamespacedName) -> bool:
        """Return whether an object of a name can be selected."""
        if self.namespaces and name[0] not in self.namespaces:
            return False
        _, terms = _parsed(self.label_selector, self.field_selector)
        return all((name[1] == one.value) is (one.operator == "=") for one in terms if one.path == _NAME)

    def narrowed(self, options: Options) -> Options:
        """Return the options of a list or a watch that shows only what is selected in its namespace."""
        labels, fields = (
            ",".join(dict.fromkeys(filter(None, pair)))
            for pair in (
                (options.label_selector, self.label_selector),
                (options.field_selector, self.field_selector),
            )
        )
        return replace(options, label_selector=labels, field_selector=fields)


def named(name: str) -> str:
    """Return the field selector of a name; one that a user has given may contain anything."""
    escaped = _SPECIAL.sub(r"\\\g<0>", name)
    return f"{_NAME}={escaped}"


def one_object(name: str) -> Selection:
    """Return the selection of one object by its name."""
    return Selection(field_selector=named(name))


@lru_cache(maxsize=256)
def _parsed(label_selector: str, field_selector: str) -> tuple[LabelSelector, tuple[FieldTerm, ...]]:
    return LabelSelector.parse(label_selector), parse_field_selector(field_selector)
