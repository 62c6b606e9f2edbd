"""Project of a new operator: its names and options, and its files."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Final

from ocf.errors import ConfigError
from ocf.objects.name_validation import dns_label, dns_subdomain
from ocf.scaffold.package_names import package_problem
from ocf.scaffold.template import Templates

__all__ = ["RESERVED", "OperatorProject", "render_operator"]

_SUFFIX: Final = "-operator"
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
_VERSION: Final = re.compile(r"v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")
# With longer names the formatter would break lines of the templates.
_LONGEST_KIND: Final = 30
_LONGEST_NAME: Final = 30
_FOLDERS: Final = ("tests", "deploy", "samples", "wheels", "requirements")

RESERVED: Final = frozenset(
    {
        "Any",
        "ApiServerCluster",
        "BooleanGate",
        "Builder",
        "CamelModel",
        "Component",
        "ContainerEditor",
        "CustomResource",
        "Envtest",
        "Field",
        "FieldError",
        "Final",
        "Firing",
        "Fixture",
        "Iterator",
        "MATRIX",
        "Manifest",
        "MatrixCase",
        "NAME",
        "NotFoundError",
        "ObjectKey",
        "Operation",
        "Operator",
        "OwnerEnv",
        "OwnerType",
        "PAGE",
        "Participation",
        "PatchOptions",
        "PatchType",
        "Path",
        "PrinterColumn",
        "SERVER",
        "Scope",
        "V1Lifecycle",
        "V1LifecycleHandler",
        "V1SleepAction",
        "Version",
        "VersionGate",
        "VersionMatrix",
        "VirtualClock",
        "Webhook",
    }
)
"""Names of the generated modules, which a kind must not have."""

_TEMPLATES: Final = "templates/operator"
# Template, destination, and the flag without which it is left out.
_FILES: Final = (
    ("pyproject.toml", "pyproject.toml", ""),
    ("README.md", "README.md", ""),
    ("Makefile", "Makefile", ""),
    ("Containerfile", "Containerfile", ""),
    ("dockerignore", ".dockerignore", ""),
    ("gitignore", ".gitignore", ""),
    ("pre-commit-config.yaml", ".pre-commit-config.yaml", ""),
    ("ci.yaml", ".github/workflows/ci.yaml", ""),
    ("wheels.md", "wheels/README.md", ""),
    ("package/init.py", "@{package}/__init__.py", ""),
    ("package/model.py", "@{package}/model.py", ""),
    ("package/admission.py", "@{package}/admission.py", "webhooks"),
    ("package/operator.py", "@{package}/operator.py", ""),
    ("package/with_kopf.py", "@{package}/with_kopf.py", "kopf"),
    ("samples/owner.yaml", "samples/@{singular}.yaml", ""),
    ("tests/conftest.py", "tests/conftest.py", ""),
    ("tests/matrix.py", "tests/matrix.py", ""),
    ("tests/test_operator.py", "tests/test_operator.py", ""),
    ("tests/test_admission.py", "tests/test_admission.py", "webhooks"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorProject:
    """Names and options of a new operator.

    Args:
        name: Name of the operator, a DNS label: `shop-operator`.
        kind: Kind of its owners; empty derives it from the name, without `-operator`: `Shop`.
        group: API group of the kind.
        version: API version of the kind.
        cluster_scoped: Whether owners have no namespace.
        webhooks: Whether the operator defaults and validates owners in webhooks.
        kopf: Whether its process is one of kopf.
        leader_election: Whether it runs in two processes, of which one works.
        autoscaling: Whether owners can have a HorizontalPodAutoscaler.
        taken: Names of importable packages, which that of the project would hide.

    Raises:
        ConfigError: If a name is not valid; the message lists every problem.

    Example:
        >>> project = OperatorProject(name="shop-operator")
        >>> project.package, project.owner_kind
        ('shop_operator', 'Shop')
        >>> OperatorProject(name="class")
        Traceback (most recent call last):
        ocf.errors.ConfigError: name: "class" gives the package class, which is a keyword of Python; use another name
    """

    name: str
    kind: str = ""
    group: str = "example.com"
    version: str = "v1alpha1"
    cluster_scoped: bool = False
    webhooks: bool = False
    kopf: bool = False
    leader_election: bool = True
    autoscaling: bool = False
    taken: Collection[str] = field(default=frozenset(), repr=False)

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise ConfigError("; ".join(problems))

    @property
    def package(self) -> str:
        """Name of the Python package."""
        return self.name.replace("-", "_")

    @property
    def owner_kind(self) -> str:
        """The kind of its owners."""
        return self.kind or "".join(part.capitalize() for part in self.name.removesuffix(_SUFFIX).split("-"))

    @property
    def flags(self) -> Mapping[str, bool]:
        """Flags of the templates."""
        names = ("cluster_scoped", "webhooks", "kopf", "leader_election", "autoscaling")
        return {name: getattr(self, name) for name in names}

    @property
    def manifest_options(self) -> tuple[str, ...]:
        """Options with which `ocf manifests` writes the manifests of the project."""
        process = ("--replicas=2",) if self.leader_election else ("--no-leader-election",)
        return ("--owner=samples", *process, *(("--kopf",) if self.kopf else ()))

    def _problems(self) -> Iterator[str]:
        problems = dns_label(self.name)
        yield from (f'name: "{self.name}": {problem}' for problem in problems)
        if len(self.name) > _LONGEST_NAME:
            yield f"name: must be at most {_LONGEST_NAME} characters, got {len(self.name)}"
        if not problems:
            yield from self._problems_of_package()
        yield from self._problems_of_kind()
        yield from (f'--group: "{self.group}": {problem}' for problem in dns_subdomain(self.group))
        if "." not in self.group:
            yield f'--group: must be a domain such as shops.example.com, got "{self.group}"'
        if not _VERSION.fullmatch(self.version):
            yield f'--version: must be a version such as v1, v1beta1 or v1alpha1, got "{self.version}"'

    def _problems_of_package(self) -> Iterator[str]:
        reason = package_problem(self.package, {*self.taken, *_FOLDERS})
        if reason:
            yield f'name: "{self.name}" gives the package {self.package}, which {reason}'

    def _problems_of_kind(self) -> Iterator[str]:
        kind = self.owner_kind
        if not _KIND.fullmatch(kind) or len(kind) > _LONGEST_KIND:
            yield f'--kind: must be CamelCase, such as Shop, of at most {_LONGEST_KIND} characters, got "{kind}"'
        elif kind in RESERVED or hasattr(builtins, kind) or keyword.iskeyword(kind):
            yield f"--kind: {kind} is a name that the project itself uses; use another one, such as My{kind}"


def render_operator(project: OperatorProject, *, requirement: str, locks: Mapping[str, str]) -> dict[str, str]:
    """Render the files of a new operator, without those that are generated from its code (manifests and goldens).

    Args:
        project: The names and options.
        requirement: The requirement on ocf, such as `ocf>=0.1`.
        locks: Lock files: path to text.

    Returns:
        Path in the project to text.

    Raises:
        ConfigError: If Jinja is not installed.
    """
    autoscaled = ", with an autoscaler if its spec asks for one" if project.autoscaling else ""
    variables = {
        "name": project.name,
        "package": project.package,
        "kind": project.owner_kind,
        "singular": project.owner_kind.lower(),
        "group": project.group,
        "version": project.version,
        "ocf_requirement": requirement,
        "manifest_options": " ".join(project.manifest_options),
        "autoscaler_phrase": autoscaled,
    }
    flags = project.flags
    templates = Templates({**variables, **flags})
    folder = files("ocf.scaffold").joinpath(_TEMPLATES)
    rendered = {
        templates.render(path): templates.render(folder.joinpath(f"{template}.tmpl").read_text(encoding="utf-8"))
        for template, path, flag in _FILES
        if not flag or flags[flag]
    }
    return {**rendered, **locks}
