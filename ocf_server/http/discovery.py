"""Discovery documents: the groups, versions and resources that are served.

There are two forms. Unaggregated discovery has one document per group and version
(https://kubernetes.io/docs/reference/using-api/api-concepts/#unaggregated-discovery). Aggregated discovery has two
documents in total, and clients ask for it by its media type.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, Final

from ocf_server.http.request import resource_path
from ocf_server.http.resource_catalog import ResourceCatalog, ServedResource, SubresourceInfo, health_checks

__all__ = ["aggregated", "api_group", "api_groups", "api_resources", "api_versions", "root_paths"]

Json = dict[str, Any]


def api_versions(address: str) -> Json:
    """Return the versions of the core group."""
    reachable = {"clientCIDR": "0.0.0.0/0", "serverAddress": address}
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [reachable]}


def api_groups(catalog: ResourceCatalog) -> Json:
    """Return all groups except the core group."""
    groups = [_group(name, versions) for name, versions in catalog.groups(by_service=True).items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(catalog: ResourceCatalog, name: str) -> Json | None:
    """Return a group, or None if it is not served."""
    versions = catalog.groups().get(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)} if versions else None


def _group(name: str, versions: Iterable[str]) -> Json:
    found = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": found, "preferredVersion": found[0]}


def api_resources(catalog: ResourceCatalog, group: str, version: str) -> Json | None:
    """Return the resources of a version, or None if it is not served."""
    kinds = catalog.of(group, version)
    if not kinds:
        return None
    name = f"{group}/{version}" if group else version
    found = [entry for kind in kinds for entry in _resources(kind)]
    # A real API server leaves the version out in the document of the core group only.
    version_of_list = {"apiVersion": "v1"} if group else {}
    return {"kind": "APIResourceList", **version_of_list, "groupVersion": name, "resources": found}


def _resources(kind: ServedResource) -> Iterator[Json]:
    main: Json = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.discovered_verbs),
    }
    if kind.short_names:
        main["shortNames"] = list(kind.short_names)
    if kind.categories:
        main["categories"] = list(kind.categories)
    if kind.stored or kind.version_hash:
        main["storageVersionHash"] = kind.version_hash or _version_hash(kind)
    yield main
    for part in kind.subresources:
        yield {
            "name": f"{kind.plural}/{part.name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            **_foreign(part),
            "kind": part.kind or kind.kind,
            "verbs": list(part.verbs),
        }


def _foreign(part: SubresourceInfo) -> Json:
    return {"group": part.group, "version": part.version} if part.version else {}


def _version_hash(kind: ServedResource) -> str:
    """Return the hash of the storage version of a custom kind, with which clients notice that it has changed."""
    name = f"{kind.group}/{kind.stored}/{kind.kind}"
    # As StorageVersionHash in `apiserver/pkg/endpoints/discovery`, so that clients may compare the two.
    return b64encode(sha256(name.encode()).digest()[:_HASH_BYTES]).decode()


_HASH_BYTES: Final = 8


def aggregated(catalog: ResourceCatalog, *, core: bool) -> Json:
    """Return a document of aggregated discovery.

    Args:
        core: Whether the document describes the core group; otherwise it describes all other groups.
    """
    items = [
        {
            "metadata": {"name": name} if name else {},
            "versions": [_version(catalog, name, version) for version in versions],
        }
        for name, versions in catalog.groups().items()
        if (not name) is core
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _version(catalog: ResourceCatalog, group: str, version: str) -> Json:
    remote = catalog.remote_version(group, version)
    kinds = [_discovered(kind) for kind in (remote.resources if remote else catalog.of(group, version))]
    freshness = "Stale" if remote and not remote.available else "Current"
    return {"version": version, **({"resources": kinds} if kinds else {}), "freshness": freshness}


def _discovered(kind: ServedResource) -> Json:
    # The two servers in a real API server differ: only that of custom kinds repeats group and version.
    own = {"group": kind.group, "version": kind.version} if kind.custom else {"group": "", "version": ""}
    found: Json = {
        "resource": kind.plural,
        "responseKind": {**own, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.discovered_verbs),
    }
    if kind.short_names:
        found["shortNames"] = list(kind.short_names)
    if kind.categories:
        found["categories"] = list(kind.categories)
    if kind.subresources:
        found["subresources"] = [
            {
                "subresource": part.name,
                "responseKind": {**own, **_foreign(part), "kind": part.kind or kind.kind},
                "verbs": list(part.verbs),
            }
            for part in kind.subresources
        ]
    return found


def root_paths(catalog: ResourceCatalog) -> Json:
    """Return the paths that the root document lists."""
    paths = ["/api", "/api/v1", "/apis", "/apis/", "/openapi/v2", "/openapi/v3", "/openapi/v3/", "/version"]
    for path, checks in health_checks().items():
        paths += [f"/{path}", *(f"/{path}/{check}" for check in checks)]
    for group, versions in catalog.groups().items():
        if group:
            paths += [f"/apis/{group}", *(resource_path(group, version) for version in versions)]
    return {"paths": sorted(paths)}
