"""Pages of the API: for each public module of the package its exported names, which mkdocstrings documents."""

import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Final

import ocf.primitives

__all__ = ["MODULES", "navigation", "page", "pages", "place_of"]

_KINDS: Final = tuple(
    sorted(found.name for found in pkgutil.iter_modules(ocf.primitives.__path__, "ocf.primitives.") if found.ispkg)
)

MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "Components": (
        "ocf.component",
        "ocf.feature",
        "ocf.editors",
        "ocf.concepts",
        "ocf.objects",
        "ocf.objects.third_party.keda",
        "ocf.errors",
        "ocf.manifests",
        "ocf.scaffold",
    ),
    "Kinds": ("ocf.primitives", *_KINDS),
    "Operators": (
        "ocf.runtime.operator",
        "ocf.runtime.workqueue",
        "ocf.runtime.crds",
        "ocf.runtime.admission",
        "ocf.runtime.rbac",
        "ocf.runtime.leader",
        "ocf.runtime.events",
        "ocf.runtime.monitoring",
        "ocf.runtime.kopf",
    ),
    "Clusters": (
        "ocf.cluster",
        "ocf.cluster.client",
        "ocf.cluster.cache",
        "ocf.embedded",
        "ocf.embedded.http",
    ),
    "Testing": (
        "ocf.testing",
        "ocf.testing.plugin",
        "ocf.testing.faults",
        "ocf.testing.fake_metrics",
        "ocf.testing.metrics_stub",
        "ocf.testing.envtest",
        "ocf.testing.provider_suite",
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
    """Return the page of a module: an instruction for mkdocstrings.

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
    module = import_module(name)
    exported = [each for each in module.__all__ if not isinstance(getattr(module, each), ModuleType)]
    return f"::: {name}\n    options:\n      heading_level: 1\n      members: [{', '.join(exported)}]\n"


def pages() -> Iterator[tuple[str, str]]:
    """Yield the place of each page in the site, and the page."""
    for names in MODULES.values():
        for name in names:
            yield place_of(name), page(name)


def navigation() -> list[dict[str, list[str]]]:
    """Return the entries of the navigation: for each area its pages."""
    return [{area: [place_of(name) for name in names]} for area, names in MODULES.items()]


def place_of(name: str) -> str:
    """Return the place of the page of a module in the site."""
    return f"reference/api/{name}.md"
