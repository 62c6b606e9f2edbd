"""Responses that are not about objects: discovery, OpenAPI, version, health.

All of them are derived from the catalog.
"""

import json
from collections.abc import Callable
from typing import Any, Final

from ocf.objects.go_strings import go_quoted
from ocf_server.api.status_errors import no_such_resource
from ocf_server.http import discovery, openapi
from ocf_server.http.media import (
    Media,
    Offer,
    media_of_errors,
    negotiate,
    reads_json,
    wants_aggregated,
    wants_openapi_protobuf,
)
from ocf_server.http.openapi_protobuf import CONTENT_TYPE as OPENAPI_PROTOBUF
from ocf_server.http.openapi_protobuf import write_document
from ocf_server.http.request import DeeperPath, GroupPath, Query, ResourcePath, VersionPath, parse_path, values
from ocf_server.http.resource_catalog import ResourceCatalog, health_checks, is_builtin, server_version
from ocf_server.http.responses import Response, error_response
from ocf_server.http.status import unknown_media

__all__ = ["document_response", "not_served"]

_AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_JSON: Final = Media()


def document_response(catalog: ResourceCatalog, path: str, query: Query, *, accept: str, host: str) -> Response:
    """Return the response to a request that is not about objects.

    Args:
        path: The path as sent.
        query: The options; those of health are read.
        accept: The `Accept` header.
        host: The `Host` header.

    Returns:
        The response, with status 404 if the path does not exist.

    Raises:
        BadRequestError: If the server cannot write the document in a media type that the client accepts.
    """
    target, media = parse_path(path), Media()
    if target is not None and not isinstance(target, DeeperPath) and not wants_aggregated(accept):
        media = negotiate(accept, Offer(forms=False, routed=_is_routed(target)))
    if isinstance(target, GroupPath):
        return _groups(catalog, target.group, accept, host, media)
    if isinstance(target, VersionPath):
        found = discovery.api_resources(catalog, target.group, target.version)
        if found is None and _is_routed(target):
            raise no_such_resource()
        return _found(found, media)
    if isinstance(target, ResourcePath):
        return not_served()
    if isinstance(target, DeeperPath):
        # The routers of built-in groups know all paths below their own.
        if is_builtin(target.group):
            raise no_such_resource()
        return not_served()
    return _other(catalog, path.strip("/"), accept, query)


def not_served() -> Response:
    """Return the response for a path that does not exist."""
    return Response("404 page not found\n", code=404)


def _found(body: Any, media: Media = _JSON) -> Response:
    return not_served() if body is None else Response(body, media=media)


def _groups(catalog: ResourceCatalog, group: str | None, accept: str, host: str, media: Media) -> Response:
    if not group and wants_aggregated(accept):
        body = discovery.aggregated(catalog, core=group == "")
        return Response(body, headers={"Content-Type": _AGGREGATED, "Vary": "Accept"})
    if group is None:
        return Response(discovery.api_groups(catalog), media=media)
    return _found(discovery.api_group(catalog, group) if group else discovery.api_versions(host), media)


def _is_routed(target: GroupPath | VersionPath | ResourcePath) -> bool:
    """Return whether the router of a real API server checks the media types of a document of discovery."""
    custom = isinstance(target, VersionPath) and not is_builtin(target.group)
    return not custom and not (isinstance(target, GroupPath) and target.group != "")


def _other(catalog: ResourceCatalog, path: str, accept: str, query: Query) -> Response:
    if path == "openapi/v2" and wants_openapi_protobuf(accept):
        body = write_document(openapi.document_v2(catalog))
        return Response(body, headers={"Content-Type": OPENAPI_PROTOBUF, "Vary": "Accept"})
    if path in _ONLY_JSON or path.startswith("openapi/v3/"):
        rejected = _without_json(path, accept)
        if rejected is not None:
            return rejected
    health, _, check = path.partition("/")
    if health in health_checks():
        return _healthy(health, check, query)
    if path.startswith("openapi/v3/"):
        return _openapi(catalog, path.split("/")[2:])
    if path == "version":
        return _version(catalog)
    build = _DOCUMENTS.get(path)
    return not_served() if build is None else Response(build(catalog))


def _healthy(path: str, check: str, query: Query) -> Response:
    """Return the response to a request for health: all checks pass, from the start."""
    checks = health_checks()[path]
    if check:
        return Response("ok") if check in checks else not_served()
    if "verbose" not in query:
        return Response("ok")
    excluded = values(query, "exclude")
    lines = [f"[+]{name}{' excluded:' if name in excluded else ''} ok\n" for name in checks]
    if unknown := sorted({*excluded} - {*checks}):
        lines.append(
            f"warn: some health checks cannot be excluded: no matches for {','.join(map(go_quoted, unknown))}\n"
        )
    return Response(f"{''.join(lines)}{path} check passed\n")


def _without_json(path: str, accept: str) -> Response | None:
    """Return the response if the client does not read JSON; None if it does."""
    if reads_json(accept):
        return None
    if path == "version":
        return error_response(unknown_media(("application/json",)), media_of_errors(accept))
    return Response("", code=406)


_ONLY_JSON: Final = ("openapi/v2", "version")


def _openapi(catalog: ResourceCatalog, parts: list[str]) -> Response:
    match parts:
        case ["api", version]:
            return _schemas(openapi.document(catalog, "", version))
        case ["apis", group, version]:
            return _schemas(openapi.document(catalog, group, version))
        case _:
            return _schemas(openapi.document_of_group(catalog, "/".join(parts)))


def _schemas(document: Any) -> Response:
    return Response("", code=404) if document is None else Response(document)


def _version(catalog: ResourceCatalog) -> Response:
    known = dict(server_version(catalog.release))
    git_version = known.pop("gitVersion")
    if catalog.release.minor >= _EMULATION:
        known |= {"emulationMajor": known["major"], "emulationMinor": known["minor"]}
        # A server emulates its own version, and is compatible with the one before.
        known |= {"minCompatibilityMajor": known["major"], "minCompatibilityMinor": str(int(known["minor"]) - 1)}
    build = {"gitVersion": git_version, "gitCommit": "", "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z"}
    found = {**known, **build, "goVersion": "", "compiler": "", "platform": "ocf/embedded"}
    # A real API server indents this document only.
    return Response(json.dumps(found, indent=2).encode(), headers={"Content-Type": "application/json"})


_EMULATION: Final = 33
"""The first minor release whose version says what it emulates."""
_DOCUMENTS: Final[dict[str, Callable[[ResourceCatalog], Any]]] = {
    "": discovery.root_paths,
    "openapi/v2": openapi.document_v2,
    "openapi/v3": openapi.index,
}
