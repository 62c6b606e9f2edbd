"""The page of the settings: every option of the public classes, from their signatures and docstrings."""

import enum
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import timedelta
from types import UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin, is_typeddict

from pydantic import BaseModel

from ocf.autoscaling.algorithm import Settings
from ocf.cluster.cache import CacheTiming, Selection
from ocf.cluster.client import ApiServerCluster, Impersonation, RestConfig, TlsConfig
from ocf.cluster.client.rest_config import ExecConfig
from ocf.component import Builder
from ocf.component.model.resource_options import EffectiveOptions, ResourceOptions
from ocf.concepts.backoff import ExponentialBackoff
from ocf.controllers import hpa
from ocf.controllers.hpa.crd import HorizontalAutoscalerSettings
from ocf.controllers.nodegroup.model import NodeGroupSpec, ScaleDownPolicy, ScaleUpPolicy
from ocf.controllers.nodegroup.options import NodeGroupControllerOptions
from ocf.controllers.nodegroup.providers.vpsie import VPSieSettings
from ocf.manifests import InstallOptions
from ocf.objects.durations import format_duration
from ocf.runtime.leader import Timing
from ocf.runtime.operator import Lease, Listen, ManagerOptions, Operator, Sharding, WebhookOptions
from scripts.site.docstrings import entries, plain, summary

__all__ = ["SETTINGS", "Setting", "long_names", "page", "settings_of"]

_INTRODUCTION: Final = """\
# Settings

Every setting of operators, controllers and the client, with its type and default. A setting without a default has to be
given. Durations are `timedelta` values, written as `1m30s` here; numbers have the unit that the meaning names.
[Commands and their options](commands.md) has what the command line sets.
"""

SETTINGS: Final[Mapping[str, tuple[Any, ...]]] = {
    "Operators": (
        Operator,
        ManagerOptions,
        Lease,
        Sharding,
        Timing,
        Listen,
        WebhookOptions,
        ExponentialBackoff,
    ),
    "Components": (Builder, ResourceOptions),
    "The client and the cache": (
        ApiServerCluster,
        RestConfig,
        TlsConfig,
        ExecConfig,
        Impersonation,
        CacheTiming,
        Selection,
    ),
    "The HPA controller": (
        hpa.HpaControllerOptions,
        Settings,
        HorizontalAutoscalerSettings,
    ),
    "The node-group controller": (
        NodeGroupControllerOptions,
        NodeGroupSpec,
        ScaleUpPolicy,
        ScaleDownPolicy,
        VPSieSettings,
    ),
    "Manifests": (InstallOptions,),
}
"""The classes with settings, by area."""

_METHOD: Final = "method"
_SENTENCE: Final = re.compile(r"(?P<first>.+?\.) +(?P<rest>[A-Z`].{30,})")
"""A first sentence, of which the rest is long enough to be folded."""
_QUALIFIED: Final = re.compile(r"\b(?:\w+\.)+(?=\w)")


class Setting(NamedTuple):
    """One setting.

    Args:
        name: Its name in the code, or in the API.
        type: Its type, as it is annotated.
        default: Its default in Python, or as a duration; empty if it has to be given.
        meaning: Its meaning, from the docstring.
    """

    name: str
    type: str
    default: str
    meaning: str


def page() -> str:
    """Return the page, in Markdown."""
    parts = [_INTRODUCTION]
    for area, owners in SETTINGS.items():
        parts += [f"## {area}\n", *map(_section, owners)]
    return "\n".join(parts)


def long_names() -> list[str]:
    """Return the names of settings that are not words of a sentence, too."""
    owners = [owner for owners in SETTINGS.values() for owner in owners]
    return sorted(
        {each.name for owner in owners for each in settings_of(owner) if "_" in each.name and "(" not in each.name}
    )


def settings_of(owner: Any) -> Iterator[Setting]:
    """Yield the settings of a class in the order of its fields or methods.

    Args:
        owner: A dataclass, a pydantic model, a typed dict, a builder with methods, or a class with an `__init__`.
    """
    if is_typeddict(owner):
        meanings = entries(owner, "Attributes")
        applied = {each.name: each.default for each in fields(EffectiveOptions)}
        for name, kind in inspect.get_annotations(owner).items():
            optional = "None" in str(kind)
            yield Setting(name, _type(kind), _default(applied.get(name, None if optional else False)), meanings[name])
    elif issubclass(owner, BaseModel):
        for name, each in owner.model_fields.items():
            default = "" if each.is_required() else _default(each.get_default(call_default_factory=True))
            yield Setting(each.alias or name, _type(each.annotation), default, plain(each.description or ""))
    elif owner is Builder:
        yield from _methods(owner)
    else:
        yield from _arguments(owner)


def _arguments(owner: Any) -> Iterator[Setting]:
    meanings = entries(owner)
    factories = {each.name: each.default_factory for each in fields(owner)} if is_dataclass(owner) else {}
    make: Any = owner
    for name, each in inspect.signature(make).parameters.items():
        factory = factories.get(name, MISSING)
        default = "" if each.default is each.empty else _default(each.default)
        if factory is not MISSING:
            default = f"`{getattr(factory, '__name__', 'a function')}()`"
        yield Setting(name, _type(each.annotation), default, meanings[name])


def _methods(owner: Any) -> Iterator[Setting]:
    for name, method in vars(owner).items():
        if not name.startswith("_") and name != "build":
            shown = [f"{each}" for each in inspect.signature(method).parameters if each != "self"]
            yield Setting(f"{name}({', '.join(shown)})", _METHOD, "", summary(method))


def _type(annotation: Any) -> str:
    return plain(_QUALIFIED.sub("", _type_text(annotation)))


def _type_text(annotation: Any) -> str:
    """Return a type as its author would write it, without what `Annotated` adds for the validation."""
    if isinstance(annotation, str):
        return annotation
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is None or origin is Literal:
        return str(getattr(annotation, "__forward_arg__", None) or inspect.formatannotation(annotation))
    if origin is Annotated:
        return _type_text(arguments[0])
    if origin in {Union, UnionType}:
        return " | ".join(map(_type_text, arguments))
    # The arguments of a Callable are a list of types, and those of tuple[int, ...] have an ellipsis.
    listed = (f"[{', '.join(map(_type_text, one))}]" if isinstance(one, list) else _type_text(one) for one in arguments)
    return f"{inspect.formatannotation(origin)}[{', '.join(listed)}]"


def _default(value: Any) -> str:
    if isinstance(value, timedelta):
        return f"`{format_duration(value)}`"
    if isinstance(value, enum.Enum):
        return f"`{type(value).__name__}.{value.name}`"
    if isinstance(value, BaseModel) or is_dataclass(value):
        return f"`{type(value).__name__}()`"
    if callable(value):
        return "a function"
    return f"`{plain(repr(value))}`"


def _section(owner: Any) -> str:
    found = list(settings_of(owner))
    if all(each.type == _METHOD for each in found):
        rows = [f"| `{each.name}` | {_folded(each.meaning)} |" for each in found]
        head = ["| method | meaning |", "| --- | --- |"]
    else:
        rows = [
            f"| `{each.name}`<br><small>`{each.type}`</small> | {each.default or 'required'} |"
            f" {_folded(each.meaning)} |"
            for each in found
        ]
        head = ["| setting and type | default | meaning |", "| --- | --- | --- |"]
    return "\n".join([f"### {owner.__name__}\n", f"{summary(owner)}\n", *head, *rows, ""])


def _folded(meaning: str) -> str:
    """Return a meaning of which a table shows the first sentence, and the rest on demand."""
    found = _SENTENCE.fullmatch(meaning)
    return meaning if found is None else f"<details><summary>{found['first']}</summary>{found['rest']}</details>"
