"""A request for a resource, with its options, and the response with one object."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ocf.cluster.protocol import Subresource
from ocf.objects import Manifest, ObjectKey
from ocf_server.api.status_errors import bad_request
from ocf_server.api.users import ADMINISTRATOR, User
from ocf_server.api.write_options import default_manager
from ocf_server.http.content_negotiation import Form, Media
from ocf_server.http.forms import require_form
from ocf_server.http.paths import ResourcePath
from ocf_server.http.query_options import Query, WriteQuery
from ocf_server.http.resource_catalog import ServedResource
from ocf_server.http.responses import Response, metadata_of
from ocf_server.http.tables import TableOptions, table

__all__ = ["RequestContext", "object_response"]

_INCLUDED: Final = ("Metadata", "Object", "None")


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A request for a resource.

    Args:
        method: The HTTP method.
        path: The parsed path.
        kind: The resource that the path names.
        query: Query parameters.
        body: Request body.
        content_type: The `Content-Type` header.
        user_agent: The `User-Agent` header.
        media: Media type of the response.
        now: The instant of the request; aware.
        warn: Called with each warning to send with the response.
        user: The user of the request.
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
    """Return the response with one object, in the representation that the client asked for.

    Args:
        context: The request.
        manifest: The object.
        code: HTTP status.
    """
    body = manifest
    require_form(context.media, context.kind, listed=False)
    if context.media.form is Form.TABLE and "metadata" in manifest and context.subresource is not Subresource.SCALE:
        version = {"resourceVersion": manifest["metadata"].get("resourceVersion", "")}
        body = table(context.kind, [manifest], version, context.table_options())
    elif context.media.form is Form.METADATA:
        body = metadata_of(manifest, context.media)
    return Response(body, code=code, media=context.media)
