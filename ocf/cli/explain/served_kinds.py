"""The kinds that a cluster serves, in two requests, and how kubectl names them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from ocf.errors import ApiError, ConfigError
from ocf.objects.suggestions import suggestions

if TYPE_CHECKING:
    from ocf.objects import Manifest

__all__ = ["JsonReader", "ServedKind", "resolve_kind", "served_kinds"]

# Servers before 1.30 have only the second version, and those before 1.26 answer with the list of groups.
_AGGREGATED: Final = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")
)
_LISTS: Final = "APIGroupDiscoveryList"


class JsonReader(Protocol):
    """Reads paths of the API server; the client of a cluster does."""

    async def read_path(self, path: str, query: Sequence[tuple[str, str]] = (), *, accept: str = "") -> Manifest:
        """Return the JSON object at a path."""
        ...


@dataclass(frozen=True, slots=True)
class ServedKind:
    """A kind that the cluster serves, in the version that it prefers.

    Args:
        plural: Its name in paths, `deployments`.
        names: The names by which kubectl finds it, in lower case: plural, singular, kind, and short names.
        verbs: What can be done with it.
        has_status: Whether its objects have a status, as its subresource `status` shows.
    """

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    names: frozenset[str]
    verbs: frozenset[str]
    has_status: bool

    @property
    def api_version(self) -> str:
        """Group and version, as in a manifest."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """Plural name with the group, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "") -> str:
        """Return the path of a list or of an object."""
        from urllib.parse import quote

        start = f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"
        place = f"/namespaces/{quote(namespace, safe='')}" if namespace and self.namespaced else ""
        return "/".join([f"{start}{place}", self.plural, *([quote(name, safe="")] if name else ())])


async def served_kinds(cluster: JsonReader) -> list[ServedKind]:
    """Return the kinds that a cluster serves; only the requests of old servers are more than two."""
    found: list[ServedKind] = []
    for path in ("/api", "/apis"):
        answer = await cluster.read_path(path, accept=f"{_AGGREGATED},application/json")
        if answer.get("kind") == _LISTS:
            found += _aggregated(answer)
        else:
            found += [each async for each in _one_by_one(cluster, path, answer)]
    return found


def _aggregated(answer: Manifest) -> Iterator[ServedKind]:
    for item in answer.get("items") or ():
        group, seen = str((item.get("metadata") or {}).get("name") or ""), set[str]()
        for version in item.get("versions") or ():
            for one in version.get("resources") or ():
                kind = (one.get("responseKind") or {}).get("kind")
                # The versions are in order of preference.
                if kind and one["resource"] not in seen:
                    seen.add(one["resource"])
                    yield ServedKind(
                        group,
                        version["version"],
                        kind,
                        one["resource"],
                        namespaced=one.get("scope") == "Namespaced",
                        names=_names(one.get("singularResource"), kind, one["resource"], one.get("shortNames")),
                        verbs=frozenset(one.get("verbs") or ()),
                        has_status=any(part.get("subresource") == "status" for part in one.get("subresources") or ()),
                    )


async def _one_by_one(cluster: JsonReader, path: str, answer: Manifest) -> AsyncIterator[ServedKind]:
    """Yield the kinds of a server without aggregated discovery, from one request for each group."""
    groups = answer.get("groups") or [{"name": "", "preferredVersion": {"groupVersion": "v1", "version": "v1"}}]
    for group in groups:
        preferred = group["preferredVersion"]
        try:
            listed = await cluster.read_path(f"{path}/{preferred['groupVersion']}")
        except ApiError:
            # The server of an aggregated API may be down, and its kinds are then not known.
            continue
        names = {one["name"] for one in listed.get("resources") or ()}
        for one in listed.get("resources") or ():
            if "/" not in one["name"]:
                yield ServedKind(
                    group["name"],
                    preferred["version"],
                    one["kind"],
                    one["name"],
                    namespaced=bool(one.get("namespaced")),
                    names=_names(one.get("singularName"), one["kind"], one["name"], one.get("shortNames")),
                    verbs=frozenset(one.get("verbs") or ()),
                    has_status=f"{one['name']}/status" in names,
                )


def _names(singular: object, kind: str, plural: str, short: Sequence[str] | None) -> frozenset[str]:
    return frozenset(str(one).lower() for one in (singular, kind, plural, *(short or ())) if one)


def resolve_kind(word: str, served: Sequence[ServedKind]) -> ServedKind:
    """Return the kind that a user names as for kubectl: `shops`, `shop`, `sh`, `Shop`, `shop.example.com`.

    Raises:
        ConfigError: If the cluster serves no such kind; the error has similar names.
    """
    name, _, rest = word.lower().partition(".")
    candidates = [one for one in served if name in one.names and "get" in one.verbs]
    # A version before the group is optional, as in kubectl: deployments.v1.apps.
    found = [one for one in candidates if rest in {"", one.group.lower(), f"{one.version}.{one.group}".lower()}]
    if found:
        # The core group comes first, as in kubectl.
        return found[0]
    known = sorted({one for each in served if "get" in each.verbs for one in each.names})
    near = suggestions(name, known, most=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise ConfigError(f'the cluster serves no kind "{word}"{hint}')
