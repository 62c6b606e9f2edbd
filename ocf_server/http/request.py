"""A request for a resource: its path, the options in its query, and the response with one object.

The layout of paths is described in https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris. Parsing
does not check whether the group, version and resource are served; the catalog does. The path of a cluster-scoped object
has an empty namespace.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias
from urllib.parse import unquote

from multidict import MultiMapping

from ocf.cluster.protocol import Subresource
from ocf.errors import FieldProblem, InvalidError, StatusCause
from ocf.objects import Manifest, ObjectKey
from ocf.objects.go_strings import go_quoted
from ocf_server.api.status_errors import bad_request
from ocf_server.api.users import ADMINISTRATOR, User
from ocf_server.api.write_options import FieldValidation, default_manager, require_manager
from ocf_server.http.media import Form, Media, require_form
from ocf_server.http.resource_catalog import ServedResource, scale_kind
from ocf_server.http.responses import Response, metadata_of
from ocf_server.http.status import bad_option
from ocf_server.http.tables import TableOptions, table

__all__ = [
    "DeeperPath",
    "GroupPath",
    "ListQuery",
    "Query",
    "RequestContext",
    "ResourcePath",
    "VersionPath",
    "WriteQuery",
    "integer",
    "invalid_options",
    "is_set",
    "object_response",
    "parse_path",
    "read_dry_run",
    "resource_path",
    "values",
]


@dataclass(frozen=True, slots=True)
class GroupPath:
    """Path of the versions of a group.

    Args:
        group: The group; empty for `/api`, None for the list of all other groups.
    """

    group: str | None


@dataclass(frozen=True, slots=True)
class VersionPath:
    """Path of the resources of a version.

    Args:
        group: The group; empty for the core group.
    """

    group: str
    version: str


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """Path of a collection, an object, or a subresource.

    Args:
        group: The group; empty for the core group.
        namespace: The namespace; empty for all namespaces, or for cluster-scoped objects.
        name: Name of the object; empty for a collection.
        subresource: The subresource; empty for the object itself.
        watch: Whether it is a deprecated path of a watch, `/api/v1/watch/pods`.
    """

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch: bool = False


@dataclass(frozen=True, slots=True)
class DeeperPath:
    """Path below a version that is not that of a resource."""

    group: str
    version: str


def parse_path(path: str) -> GroupPath | VersionPath | ResourcePath | DeeperPath | None:
    """Parse the path of a request.

    Args:
        path: The path as sent, with percent-encoding.

    Returns:
        The parsed path, or None if it is not a path of an API.

    Example:
        >>> path = parse_path("/apis/apps/v1/namespaces/shop/deployments")
        >>> path == ResourcePath("apps", "v1", "deployments", namespace="shop")
        True
        >>> parse_path("/api/v1/watch/namespaces/shop")
        ResourcePath(group='', version='v1', plural='namespaces', namespace='', name='shop', subresource='', watch=True)
    """
    parts = [unquote(part) for part in path.strip("/").split("/")]
    match parts:
        case ["api"]:
            return GroupPath("")
        case ["api", version, *rest]:
            return _in_version("", version, rest)
        case ["apis"]:
            return GroupPath(None)
        case ["apis", group]:
            return GroupPath(group)
        case ["apis", group, version, *rest]:
            return _in_version(group, version, rest)
        case _:
            return None


def _in_version(group: str, version: str, rest: list[str]) -> VersionPath | ResourcePath | DeeperPath:
    if not rest:
        return VersionPath(group, version)
    watch = rest[0] == _WATCH and len(rest) > 1
    rest = rest[1:] if watch else rest
    namespace = ""
    # The subresources of a namespace look like collections in the namespace.
    if rest[0] == "namespaces" and len(rest) > _OF_NAMESPACE and rest[2:] not in _NAMESPACE_PARTS:
        namespace, rest = rest[1], rest[2:]
    # What follows a proxy is a path of another server.
    proxied = len(rest) > _MAX_PARTS and rest[_MAX_PARTS - 1] == "proxy"
    if not proxied and (not all(rest) or len(rest) > _MAX_PARTS):
        return DeeperPath(group, version)
    plural, name, part = (*rest, "", "")[:_MAX_PARTS]
    return ResourcePath(group, version, plural, namespace, name, part, watch)


_WATCH: Final = "watch"
_OF_NAMESPACE: Final = 2
_NAMESPACE_PARTS: Final = (["status"], ["finalize"])
_MAX_PARTS: Final = 3


def resource_path(group: str, version: str) -> str:
    """Return the path of the resources of a version.

    Args:
        group: The group; empty for the core group.

    Example:
        >>> resource_path("apps", "v1"), resource_path("", "v1")
        ('/apis/apps/v1', '/api/v1')
    """
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


Query: TypeAlias = Mapping[str, str]
"""The options; one that occurs several times has its first value, unless it is a `MultiMapping`."""

_VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")


def is_set(query: Query, name: str) -> bool:
    """Return whether a boolean option of a query is true.

    Only the absence of the option and the values `0` and `false`, in any case, are false: the conversion of a query
    parameter to a bool in `k8s.io/apimachinery/pkg/runtime`.

    Example:
        >>> is_set({"watch": "True"}, "watch"), is_set({"watch": ""}, "watch"), is_set({"watch": "False"}, "watch")
        (True, True, False)
    """
    return name in query and query[name] != "0" and query[name].lower() != "false"


def values(query: Query, name: str) -> list[str]:
    """Return all values of an option, in order."""
    if isinstance(query, MultiMapping):
        return query.getall(name, [])
    return [query[name]] if name in query else []


def integer(query: Query, name: str) -> int:
    """Return the value of an option that is an integer; 0 without the option.

    Raises:
        BadRequestError: If the value is not an integer of 64 bits.
    """
    text = query.get(name, "0")
    if not _INTEGER.fullmatch(text):
        raise bad_request(f"strconv.ParseInt: parsing {go_quoted(text)}: invalid syntax")
    if len(text) > _DIGITS or not -(2**63) <= int(text) < 2**63:
        raise bad_request(f"strconv.ParseInt: parsing {go_quoted(text)}: value out of range")
    return int(text)


_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
# More digits than this are rejected unread, as int() does from 4300 on with an error of its own.
_DIGITS: Final = 100


@dataclass(frozen=True, slots=True)
class ListQuery:
    """The options of a list or a watch.

    Args:
        limit: Maximum number of objects; 0 for all.
        resource_version: Version at which a watch starts, or the minimum version of a list.
        match: Interpretation of `resource_version` (`resourceVersionMatch`).
        watch: Whether the request is a watch.
        bookmarks: Whether a watch reports bookmarks.
        initial: Whether a watch starts with the existing objects and marks their end with a bookmark
            (`sendInitialEvents`); None if this follows from `resource_version`.
        timeout: Seconds after which a watch ends; 0 for never. A watch of negative seconds ends at once.
    """

    label_selector: str = ""
    field_selector: str = ""
    shard_selector: str = ""
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    match: str = ""
    watch: bool = False
    bookmarks: bool = False
    initial: bool | None = None
    timeout: int = 0

    @classmethod
    def read(cls, query: Query) -> "ListQuery":
        """Read the options from a query.

        Raises:
            ApiError: If an option has an invalid value, or two options contradict each other.
        """
        options = cls(
            label_selector=query.get("labelSelector", ""),
            field_selector=query.get("fieldSelector", ""),
            shard_selector=query.get("shardSelector", ""),
            limit=max(0, integer(query, "limit")),
            continue_token=query.get("continue", ""),
            resource_version=query.get("resourceVersion", ""),
            match=query.get("resourceVersionMatch", ""),
            watch=is_set(query, "watch"),
            bookmarks=is_set(query, "allowWatchBookmarks"),
            initial=is_set(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
            timeout=integer(query, "timeoutSeconds"),
        )
        options._require_consistent()
        return options

    @property
    def is_exact(self) -> bool:
        """Whether a list has to be answered at its `resource_version`, and not at a newer one.

        A page is, also without `resourceVersionMatch`; see
        https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list.
        """
        # Pages of one list must be of one version, or objects that move between them would be lost.
        paged = not self.match and self.limit > 0 and self.resource_version not in _ANY_VERSION
        return self.match == _EXACT or paged

    def _require_consistent(self) -> None:
        problems = [FieldProblem(name, detail) for name, detail in self._contradictions()]
        if problems:
            raise invalid_options("ListOptions", problems)
        if self.continue_token and self.resource_version not in _ANY_VERSION and not self.watch:
            raise bad_request("specifying resource version is not allowed when using continue")

    def _contradictions(self) -> Iterator[tuple[str, str]]:
        if not self.watch:
            yield from self._contradictions_of_list()
        elif self.continue_token and not self.resource_version and self.initial is None:
            # A watch from the newest state begins with a list, whose options these are.
            yield _MATCH, f"Forbidden: {_MATCH} is forbidden when continue is provided"
        elif self.initial is None and self.match:
            yield _MATCH, "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            if self.match != _NOT_OLDER:
                yield _MATCH, f'Unsupported value: "{self.match}": supported values: "{_NOT_OLDER}"'
        elif self.initial is not None and self.match != _NOT_OLDER:
            yield _MATCH, "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"

    def _contradictions_of_list(self) -> Iterator[tuple[str, str]]:
        if self.initial is not None:
            yield "sendInitialEvents", "Forbidden: sendInitialEvents is forbidden for list"
        if self.match and not self.resource_version:
            yield _MATCH, "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
        if self.match and self.continue_token:
            yield _MATCH, "Forbidden: resourceVersionMatch is forbidden when continue is provided"
        if self.match not in _MATCHES:
            supported = ", ".join(f'"{each}"' for each in _MATCHES)
            yield _MATCH, f'Unsupported value: "{self.match}": supported values: {supported}'
        if self.match == _EXACT and self.resource_version == "0":
            yield _MATCH, 'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'


_MATCH: Final = "resourceVersionMatch"
_NOT_OLDER: Final = "NotOlderThan"
_ANY_VERSION: Final = ("", "0")
_EXACT: Final = "Exact"
_MATCHES: Final = (_EXACT, _NOT_OLDER, "")
_REASONS: Final = {
    "Forbidden": "FieldValueForbidden",
    "Invalid value": "FieldValueInvalid",
    "Unsupported value": "FieldValueNotSupported",
}


def invalid_options(kind: str, problems: list[FieldProblem]) -> InvalidError:
    """Return the error for options with invalid values.

    Args:
        kind: The kind of the options, for example `DeleteOptions`.
    """
    causes = [StatusCause(_REASONS[one.detail.partition(":")[0]], one.detail, one.path) for one in problems]
    text = str(problems[0]) if len(problems) == 1 else f"[{', '.join(map(str, problems))}]"
    return InvalidError(f'{kind}.meta.k8s.io "" is invalid: {text}', code=422, reason="Invalid", causes=causes)


@dataclass(frozen=True, slots=True)
class WriteQuery:
    """The options of a create, an update or a patch.

    Args:
        field_manager: The field manager; empty if the request does not set one.
        dry_run: Return the object that would be stored, without storing it.
        force: Take over fields of other managers; None if the request does not set it.
    """

    field_manager: str = ""
    dry_run: bool = False
    force: bool | None = None
    validation: FieldValidation = FieldValidation.WARN

    @classmethod
    def read(cls, query: Query, kind: str) -> "WriteQuery":
        """Read the options from a query.

        Args:
            kind: The kind of the options, for messages: `CreateOptions`, `UpdateOptions`, `PatchOptions`.

        Raises:
            InvalidError: If an option has an invalid value.
        """
        validation = query.get("fieldValidation", "")
        if validation not in _VALIDATIONS:
            raise bad_option(kind, "fieldValidation", f'"{validation}"', _VALIDATIONS)
        manager = query.get("fieldManager", "")
        require_manager(manager, kind)
        return cls(
            field_manager=manager,
            dry_run=read_dry_run(values(query, "dryRun"), kind),
            force=is_set(query, "force") if "force" in query else None,
            validation=FieldValidation(validation or FieldValidation.WARN),
        )


def read_dry_run(given: list[str], kind: str) -> bool:
    """Return whether a request is a dry run.

    Args:
        given: The values of the option `dryRun`.

    Raises:
        InvalidError: If a value is not `All`.
    """
    # `dryRun=true`, or an empty value, is a mistake that would otherwise write.
    if any(value != "All" for value in given):
        raise bad_option(kind, "dryRun", json.dumps(given, separators=(",", ":")), ("All",))
    return bool(given)


_INCLUDED: Final = ("Metadata", "Object", "None")


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A request for a resource.

    Args:
        content_type: The `Content-Type` header.
        user_agent: The `User-Agent` header.
        now: The instant of the request; aware.
        warn: Called with each warning to send with the response.
    """

    method: str
    path: ResourcePath
    kind: ServedResource
    query: Query
    body: bytes
    content_type: str
    user_agent: str
    media: Media
    now: datetime
    warn: Callable[[str], None]
    user: User = ADMINISTRATOR

    @property
    def key(self) -> ObjectKey:
        """The object that the path names."""
        return ObjectKey(self.kind.api_version, self.kind.kind, self.path.name, self.path.namespace)

    @property
    def subresource(self) -> Subresource | None:
        """The subresource that the path names."""
        return Subresource(self.path.subresource) if self.path.subresource else None

    def table_options(self, *, heading: bool = True) -> TableOptions:
        """Return the options of a table in the response.

        Raises:
            BadRequestError: If the query asks for an object of an unknown form in each row.
        """
        include = self.query.get("includeObject") or _INCLUDED[0]
        if include not in _INCLUDED:
            detail = f"Invalid value: \"{include}\": must be 'Metadata', 'Object', 'None', or empty"
            raise bad_request(f"Unable to convert to Table as requested: includeObject: {detail}")
        return TableOptions(self.now, include, heading, self.media)

    def manager(self, options: WriteQuery) -> str:
        """Return the field manager of a write."""
        return options.field_manager or default_manager(self.user_agent)


def object_response(context: RequestContext, manifest: Manifest, code: int = 200) -> Response:
    """Return the response with one object, in the representation that the client asked for."""
    body = manifest
    require_form(context.media, context.kind, listed=False)
    if context.media.form is Form.TABLE and "metadata" in manifest:
        kind = scale_kind(context.kind) if context.subresource is Subresource.SCALE else context.kind
        version = {"resourceVersion": manifest["metadata"].get("resourceVersion", "")}
        body = table(kind, [manifest], version, context.table_options())
    elif context.media.form is Form.METADATA:
        body = metadata_of(manifest, context.media)
    return Response(body, code=code, media=context.media)
