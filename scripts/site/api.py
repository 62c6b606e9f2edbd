"""Pages of the API: for each public module of the package its exported names, which mkdocstrings documents."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Final

from scripts.site import kinds

__all__ = ["MODULES", "kinds_navigation", "navigation", "page", "pages", "place_of"]

_API: Final = "reference/api/"
_ANY_KIND: Final = "ocf.primitives.unstructured"
_KINDS: Final = tuple(f"ocf.primitives.{name}" for name in kinds.NAMES)

MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "Components": (
        "ocf.component",
        "ocf.feature",
        "ocf.editors",
        "ocf.concepts",
        "ocf.concepts.tracing",
        "ocf.objects",
        "ocf.objects.third_party.keda",
        "ocf.errors",
        "ocf.manifests",
        "ocf.scaffold",
    ),
    "Kinds": ("ocf.primitives", "ocf.primitives.external", *_KINDS),
    "Operators": (
        "ocf.runtime.operator",
        "ocf.runtime.page",
        "ocf.runtime.workqueue",
        "ocf.runtime.crds",
        "ocf.runtime.admission",
        "ocf.runtime.rbac",
        "ocf.runtime.leader",
        "ocf.runtime.events",
        "ocf.runtime.monitoring",
        "ocf.runtime.tracing",
        "ocf.runtime.kopf",
        "ocf.ownership",
    ),
    "Clusters": (
        "ocf.cluster",
        "ocf.cluster.client",
        "ocf.cluster.cache",
        "ocf_server",
        "ocf_server.http",
    ),
    "Testing": (
        "ocf.testing",
        "ocf.testing.plugin",
        "ocf.testing.faults",
        "ocf.testing.fake_metrics",
        "ocf.testing.metrics_stub",
        "ocf.testing.envtest",
        "ocf.testing.provider_suite",
        "ocf.testing.hostile_cloud",
    ),
    "Autoscalers": (
        "ocf.autoscaling",
        "ocf.autoscaling.builders.metrics",
        "ocf.autoscaling.builders.behavior",
        "ocf.autoscaling.algorithm",
        "ocf.autoscaling.explain",
        "ocf.controllers.hpa",
        "ocf.controllers.hpa.crd",
        "ocf.controllers.hpa.snapshot",
        "ocf.controllers.metrics_client",
        "ocf.simulation",
        "ocf.simulation.load",
        "ocf.simulation.measures",
        "ocf.simulation.recording",
        "ocf.simulation.scenario",
        "ocf.simulation.tuning",
    ),
    "Nodes": (
        "ocf.nodegroups",
        "ocf.controllers.nodegroup",
        "ocf.controllers.nodegroup.controller",
        "ocf.controllers.nodegroup.definitions",
        "ocf.controllers.nodegroup.providers.simulated",
        "ocf.controllers.nodegroup.providers.vpsie",
    ),
}
"""The modules that users import from, by area: every module that a page imports from, and every kind."""


def page(name: str) -> str:
    """Return the page of a module: that of a kind from its declaration, any other as an instruction for mkdocstrings.

    Args:
        name: The module.

    Example:
        >>> print(page("ocf.runtime.kopf"))
        ::: ocf.runtime.kopf
            options:
              heading_level: 1
              members: [attach]
        <BLANKLINE>
    """
    kind = _typed_kind(name)
    return kinds.page(kind, _documentation(name, level=3)) if kind else _documentation(name, level=1)


def _documentation(name: str, *, level: int) -> str:
    module = import_module(name)
    exported = [each for each in module.__all__ if not isinstance(getattr(module, each), ModuleType)]
    return f"::: {name}\n    options:\n      heading_level: {level}\n      members: [{', '.join(exported)}]\n"


def pages() -> Iterator[tuple[str, str]]:
    """Yield the place of each page in the site, and the page."""
    for names in MODULES.values():
        for name in names:
            yield place_of(name), page(name)


def navigation() -> list[dict[str, list[str]]]:
    """Return the entries of the navigation: for each area its pages, without those of the kinds."""
    return [{area: [place_of(name) for name in names if not _typed_kind(name)]} for area, names in MODULES.items()]


def kinds_navigation() -> list[str]:
    """Return the entries of the navigation for the kinds."""
    return [place_of(name) for name in _KINDS if _typed_kind(name)]


def place_of(name: str) -> str:
    """Return the place of the page of a module in the site."""
    kind = _typed_kind(name)
    return kinds.place_of(kind) if kind else f"{_API}{name}.md"


def _typed_kind(name: str) -> str:
    """Return the name of a kind with a declaration; empty for any other module."""
    return name.rpartition(".")[2] if name in _KINDS and name != _ANY_KIND else ""
