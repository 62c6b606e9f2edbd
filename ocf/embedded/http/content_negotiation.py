"""Content negotiation of responses.

A client lists the media types it can read in order of preference, and may ask for a table or for metadata only
(https://kubernetes.io/docs/reference/using-api/api-concepts/#alternate-representations-of-resources). Responses are
never written in protobuf; a client that prefers it gets the next media type in its list.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ocf.embedded.http.status import not_acceptable

__all__ = ["Form", "Media", "media_type", "negotiate", "wants_aggregated"]

_JSON: Final = "application/json"
_YAML: Final = "application/yaml"
_OFFERED: Final = (_JSON, _YAML, "application/json;stream=watch")
_WILD: Final = ("*/*", "application/*")


class Form(Enum):
    """Representation of an object in a response."""

    WHOLE = "whole"
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"


@dataclass(frozen=True, slots=True)
class Media:
    """Media type of a response.

    Args:
        yaml: Whether it is written as YAML; otherwise as JSON.
        form: Representation of each object.
    """

    yaml: bool = False
    form: Form = Form.WHOLE

    @property
    def content_type(self) -> str:
        """The value of the header `Content-Type`."""
        return _YAML if self.yaml else _JSON


@dataclass(frozen=True, slots=True)
class _Wanted:
    type: str
    parameters: dict[str, str]


def _read(accept: str) -> Iterator[_Wanted]:
    """Parse an `Accept` header; yield the media types in the client's order of preference."""
    found: list[tuple[float, _Wanted]] = []
    for item in accept.split(","):
        name, *rest = (part.strip() for part in item.split(";"))
        parameters = {part.partition("=")[0]: part.partition("=")[2] for part in rest if "=" in part}
        weight = _number(parameters.pop("q", "1"))
        if name:
            found.append((weight, _Wanted(name.lower(), parameters)))
    for weight, wanted in sorted(found, key=lambda pair: -pair[0]):
        if weight > 0:
            yield wanted


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def negotiate(accept: str, *, watch: bool = False) -> Media:
    """Return the media type of a response.

    Args:
        accept: The `Accept` header; empty accepts everything.
        watch: Whether the response is a watch, which is never written as YAML.

    Returns:
        The client's most preferred media type that the server can write.

    Raises:
        BadRequestError: If the server cannot write any of them.

    Example:
        >>> negotiate("application/vnd.kubernetes.protobuf,application/json").content_type
        'application/json'
        >>> negotiate("application/json;as=Table;v=v1;g=meta.k8s.io,application/json").form
        <Form.TABLE: 'Table'>
    """
    if not accept.strip():
        return Media()
    for wanted in _read(accept):
        media = _media(wanted)
        if media is not None and not (watch and media.yaml):
            return media
    raise not_acceptable(_OFFERED)


def _media(wanted: _Wanted) -> Media | None:
    if wanted.type not in (_JSON, _YAML, *_WILD):
        return None
    form = Form.WHOLE
    if "as" in wanted.parameters:
        if (wanted.parameters.get("g"), wanted.parameters.get("v")) != ("meta.k8s.io", "v1"):
            return None
        name = wanted.parameters["as"].removesuffix("List")
        if name not in (Form.TABLE.value, Form.METADATA.value):
            return None
        form = Form(name)
    return Media(yaml=wanted.type == _YAML, form=form)


def wants_aggregated(accept: str) -> bool:
    """Return whether a client asks for aggregated discovery.

    Args:
        accept: The `Accept` header.
    """
    for wanted in _read(accept):
        if wanted.type in (_JSON, *_WILD):
            return wanted.parameters.get("as") == "APIGroupDiscoveryList" and wanted.parameters.get("v") == "v2"
    return False


def media_type(content_type: str) -> str:
    """Return the media type of a body, without parameters.

    Args:
        content_type: The `Content-Type` header.

    Example:
        >>> media_type("application/json; charset=utf-8")
        'application/json'
    """
    return content_type.partition(";")[0].strip().lower()
