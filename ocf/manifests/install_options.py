"""Options of an installation: names, namespace, image, replicas, and the metadata of the project."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from semver import Version

from ocf.errors import ConfigError
from ocf.objects.name_validation import dns_label

__all__ = ["InstallOptions", "Project"]

_VERSION: Final = "0.1.0"
# The forms of https://packaging.python.org/en/latest/specifications/version-specifiers/ that are usual in projects.
_PYTHON_VERSION: Final = re.compile(
    r"(?P<release>\d+(?:\.\d+){0,2})(?:(?P<pre>a|b|rc)(?P<number>\d+))?(?:\.dev(?P<dev>\d+))?"
)
# The grammar of https://pkg.go.dev/github.com/distribution/reference, with a port of the registry and a digest.
_PART: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_IMAGE: Final = re.compile(
    rf"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/|\[[0-9a-fA-F:]+\](?::[0-9]+)?/)?{_PART}(?:/{_PART})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[a-z0-9]+:[0-9a-fA-F]{32,})?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """Metadata of the project that ships an operator, for charts and bundles.

    Args:
        version: Version of the operator, a semantic version.
        description: Summary in one line.
        authors: Names and e-mail addresses; an address may be empty.
        links: Names and URLs.
    """

    version: str = _VERSION
    description: str = ""
    authors: Sequence[tuple[str, str]] = ()
    links: Sequence[tuple[str, str]] = ()
    keywords: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not Version.is_valid(self.version):
            raise ConfigError(
                f'the version must be a semantic version such as 1.2.0, which charts and bundles require, got "'
                f'{self.version}"'
            )

    @classmethod
    def of_pyproject(cls, table: Mapping[str, Any]) -> Project:
        """Read the table `project` of a `pyproject.toml`.

        Raises:
            ConfigError: If the version is not a semantic version.

        Example:
            >>> project = Project.of_pyproject({"version": "1.2.0rc1", "authors": [{"name": "Shop team"}]})
            >>> project.version, project.authors
            ('1.2.0-rc.1', (('Shop team', ''),))
        """
        authors = (each for each in table.get("authors", ()) if isinstance(each, Mapping))
        return cls(
            version=_semantic_version(str(table.get("version", _VERSION))),
            description=str(table.get("description", "")),
            authors=tuple((str(each.get("name", "")), str(each.get("email", ""))) for each in authors),
            links=tuple((str(name), str(url)) for name, url in table.get("urls", {}).items()),
            keywords=tuple(map(str, table.get("keywords", ()))),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallOptions:
    """Options of an installation.

    Args:
        namespace: Namespace of the operator; empty for a namespace with the operator's name.
        image: Image of the operator; empty for its name, with the version of the project as tag.
        replicas: Number of processes, of which one reconciles unless they share the owners; needs leader election if it
            is more than 1.
        leader_election: Whether the processes elect a leader.
        sharding: What the processes divide the owners by, `uid` or `namespace`; empty for one that reconciles all.
        watch_namespaces: Namespaces that the operator watches; empty for all.
        page: Whether each process serves the page of owners and reconciles, on its loopback address.
        kopf: Whether the operator runs in a kopf process, which needs further privileges.
        owner_references_enforced: Whether the cluster runs the admission plugin `OwnerReferencesPermissionEnforcement`,
            as OpenShift does. Bundles for OLM always grant what it requires.
        project: Metadata of the project.

    Raises:
        ConfigError: If an option is not allowed; the message lists every problem.

    Example:
        >>> InstallOptions(replicas=2, leader_election=False)
        Traceback (most recent call last):
        ocf.errors.ConfigError: 2 replicas need leader election: without it all of them would reconcile
    """

    namespace: str = ""
    image: str = ""
    replicas: int = 1
    leader_election: bool = True
    sharding: str = ""
    watch_namespaces: Sequence[str] = ()
    page: bool = False
    kopf: bool = False
    owner_references_enforced: bool = False
    project: Project = field(default_factory=Project)

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise ConfigError("; ".join(problems))

    def _problems(self) -> Iterator[str]:
        if self.replicas < 1:
            yield f"the number of replicas must be at least 1, got {self.replicas}"
        if self.replicas > 1 and not self.leader_election:
            yield f"{self.replicas} replicas need leader election: without it all of them would reconcile"
        if self.sharding not in {"", "uid", "namespace"}:
            yield f"sharding must be uid or namespace, got {self.sharding!r:.60}"
        if self.sharding and not self.leader_election:
            yield "sharding needs leader election: the lease is the one that the processes hold together"
        if self.image and not _IMAGE.fullmatch(self.image):
            yield (
                f"the image {self.image!r} must be a reference such as registry.example.com/shops:1.2.0: lower case "
                "names, and a tag or a digest of letters, digits, dots, hyphens and underscores"
            )
        for name in (*filter(None, [self.namespace]), *self.watch_namespaces):
            yield from (f'invalid namespace "{name}": {problem}' for problem in dns_label(name))


def _semantic_version(version: str) -> str:
    """Return a version of a Python package as a semantic version; unchanged if it has another form."""
    found = _PYTHON_VERSION.fullmatch(version)
    if found is None:
        return version
    release = ".".join([*found["release"].split("."), "0", "0"][:3])
    labels = [found["pre"], found["number"], "dev" if found["dev"] else None, found["dev"]]
    prerelease = ".".join(label for label in labels if label)
    return f"{release}-{prerelease}" if prerelease else release
