"""Requests to admission webhooks as values, and what handlers respond.

Source: https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

from ocf.errors import ConfigError, ManifestError, StatusCause
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest, copy_json, read_live
from ocf.objects.field_errors import FieldError
from ocf.objects.model_errors import field_errors_of
from ocf.objects.models import validate_live
from ocf.objects.name_validation import qualified_name
from ocf.runtime.admission.match import Operation
from ocf.runtime.running_function import running_function

__all__ = [
    "OBJECT_SUBRESOURCES",
    "AdmissionRequest",
    "AuditAnnotation",
    "Deny",
    "Finding",
    "NestedTooDeeplyError",
    "UnreadableError",
    "UserInfo",
    "Warn",
    "WebhookError",
    "warnings_of",
]

T = TypeVar("T")

_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Gone",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
"""The reasons of `metav1.Status` by their codes."""


class WebhookError(Exception):
    """A function of the webhook failed; the text is sent to the client, so it contains no data of the object."""


class UnreadableError(Exception):
    """The model cannot read an object."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__("; ".join(map(str, errors)))
        self.errors = errors


class NestedTooDeeplyError(Exception):
    """An object has too many levels to be read."""


def _require_text(what: str, value: object) -> None:
    # An API server cannot decode a response with anything else, and ignores the webhook if its failure policy says so.
    if not isinstance(value, str):
        raise ConfigError(f"{what} must be a text, got {type(value).__name__}")


@dataclass(frozen=True, slots=True)
class Warn:
    """A warning, which does not reject the request; `kubectl` shows it.

    Args:
        text: One sentence, preferably of at most 120 characters.
    """

    text: str

    def __post_init__(self) -> None:
        _require_text("the text of a warning", self.text)


@dataclass(frozen=True, slots=True)
class AuditAnnotation:
    """A value that the API server writes into the audit event of the request, whether it is allowed or not.

    Args:
        key: Name of the annotation, without a prefix: the API server puts the name of the webhook in front of it.

    Raises:
        ConfigError: If the API server would drop the annotation because of its key, or the value is no text.

    Example:
        >>> AuditAnnotation("tenant", "web")
        AuditAnnotation(key='tenant', value='web')
        >>> AuditAnnotation("example.com/tenant", "web")
        Traceback (most recent call last):
        ocf.errors.ConfigError: the key of an audit annotation must be a name without a prefix, such as \
image-registry, got "example.com/tenant"
    """

    key: str
    value: str

    def __post_init__(self) -> None:
        _require_text("the key of an audit annotation", self.key)
        _require_text("the value of an audit annotation", self.value)
        if "/" in self.key or qualified_name(self.key):
            raise ConfigError(
                "the key of an audit annotation must be a name without a prefix, such as image-registry, "
                f'got "{self.key:.80}"'
            )


@dataclass(frozen=True, slots=True)
class Deny:
    """The rejection of a request for another reason than an invalid field.

    Args:
        message: Why, for the user; it follows `admission webhook "..." denied the request: `.
        code: The HTTP status code, 400 to 599; it sets the reason, as `Forbidden` for 403.
        causes: The causes in detail, such as `forbidden("spec.hostNetwork", "is not allowed")`.

    Raises:
        ConfigError: If the code is not one of an error, or the message or a cause is of another type.

    Example:
        >>> Deny("the tenant web is cordoned").reason
        'Forbidden'
        >>> Deny("the quota is used up", code=429).reason
        'TooManyRequests'
    """

    message: str
    code: int = 403
    causes: Sequence[FieldError | StatusCause] = ()

    def __post_init__(self) -> None:
        _require_text("the message of a Deny", self.message)
        if type(self.code) is not int or not 400 <= self.code <= 599:  # noqa: PLR2004 (the codes of errors in HTTP)
            raise ConfigError(f"the code of a Deny must be one of an error, 400 to 599, got {self.code!r:.60}")
        for cause in self.causes:
            if not isinstance(cause, FieldError | StatusCause):
                raise ConfigError(
                    "the causes of a Deny must be field errors such as forbidden(path, detail), got "
                    f"{type(cause).__name__}"
                )

    @property
    def reason(self) -> str:
        """The reason of the Status; empty if Kubernetes has none for the code."""
        return _REASONS.get(self.code, "")

    @property
    def status_causes(self) -> list[StatusCause]:
        """The causes as a Status has them."""
        return [cause.to_cause() if isinstance(cause, FieldError) else cause for cause in self.causes]


Finding: TypeAlias = Deny | FieldError | Warn | AuditAnnotation
"""What a handler of `validating` may find."""


@dataclass(frozen=True, slots=True)
class UserInfo:
    """The user of a request, as the API server has authenticated it.

    Args:
        username: Such as `alice`, or `system:serviceaccount:shop:default` for a ServiceAccount.
        groups: Its groups, such as `system:authenticated`.
        uid: Identifies it over time; often empty.
        extra: Further values of the authenticator.
    """

    username: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class AdmissionRequest(Generic[T]):
    """A request to create, change, delete or connect to an object, as a handler gets it.

    Nothing is copied, and a model is built when it is read for the first time. So a handler that reads only `object`
    pays for no model.

    Args:
        raw: The `request` of the AdmissionReview. It must not be changed.
        model: The model of the webhook; None for manifests.

    Example:
        >>> from kubernetes.client import V1Pod
        >>> pod = {"kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": []}}
        >>> raw = {"operation": "CREATE", "userInfo": {"username": "alice", "groups": ["team-web"]}, "object": pod}
        >>> request = AdmissionRequest(raw, V1Pod)
        >>> request.user.username, request.name, request.new.spec.containers
        ('alice', 'web', [])
    """

    raw: Manifest
    model: type[T] | None = None

    @property
    def operation(self) -> Operation:
        """The operation."""
        return Operation(self.raw["operation"])

    @cached_property
    def user(self) -> UserInfo:
        """The user who makes the request, or as whom it is made."""
        info: Mapping[str, Any] = self.raw.get("userInfo") or {}
        extra = {str(key): tuple(map(str, values or ())) for key, values in (info.get("extra") or {}).items()}
        groups = tuple(map(str, info.get("groups") or ()))
        return UserInfo(str(info.get("username") or ""), groups, str(info.get("uid") or ""), extra)

    @property
    def name(self) -> str:
        """Name of the object; empty while it is still to be generated."""
        return str(self.raw.get("name") or self._metadata.get("name") or "")

    @property
    def namespace(self) -> str:
        """Namespace of the object; empty if it has none. That of a Namespace is its own name, except on create."""
        return str(self.raw.get("namespace") or "")

    @property
    def subresource(self) -> str:
        """The subresource, such as `status` or `eviction`; empty for the object itself."""
        return str(self.raw.get("subResource") or "")

    @property
    def dry_run(self) -> bool:
        """Whether nothing will be stored: a handler must then change nothing elsewhere."""
        return bool(self.raw.get("dryRun"))

    @property
    def options(self) -> Manifest:
        """The options of the request: CreateOptions, UpdateOptions or DeleteOptions."""
        return cast("Manifest", self.raw.get("options") or {})

    @property
    def object(self) -> Manifest | None:
        """The new object as sent; None for a delete. It must not be changed."""
        return cast("Manifest | None", self.raw.get("object"))

    @property
    def old_object(self) -> Manifest | None:
        """The stored object as sent; None for a create or connect. It must not be changed."""
        return cast("Manifest | None", self.raw.get("oldObject"))

    @property
    def is_being_deleted(self) -> bool:
        """Whether the object has a deletion timestamp, and waits for its finalizers."""
        return bool(self._metadata.get("deletionTimestamp"))

    @cached_property
    def new(self) -> T:
        """The new object as the model of the webhook; for a delete, the stored one. A handler may change it.

        For a subresource with an object of another kind, such as an Eviction, the model does not fit: without a model
        this is that object; with one, reading it is an error, and the request is rejected with code 500.
        """
        return self._read("old_object" if self.operation is Operation.DELETE else "object")

    @property
    def old(self) -> T | None:
        """The stored object as the model of the webhook; None for a create.

        None also if the model cannot read it, so that an update can fix it: the user gets a warning then.
        """
        return self._stored[0]

    @property
    def _metadata(self) -> Mapping[str, Any]:
        found = (self.object or self.old_object or {}).get("metadata")
        return found if isinstance(found, dict) else {}

    @cached_property
    def _stored(self) -> tuple[T | None, str]:
        if not isinstance(self.old_object, dict):
            return None, ""
        try:
            return self._read("old_object"), ""
        except UnreadableError as error:
            fields = ", ".join(finding.path or "the object" for finding in error.errors)
            return None, f"the stored object cannot be read, so its update rules were not checked: {fields}"

    def _read(self, name: str) -> T:
        manifest = getattr(self, name)
        if not isinstance(manifest, dict):
            raise WebhookError(f"a {self.operation} of {self._resource} has no object that can be read as a model")
        try:
            return self._modelled(manifest)
        except RecursionError as error:
            raise NestedTooDeeplyError from error

    def _modelled(self, manifest: Manifest) -> T:
        if self.model is None:
            return cast("T", copy_json(manifest))
        model = cast("type[BaseModel]", self.model)
        if self.subresource not in OBJECT_SUBRESOURCES:
            what = f"{manifest.get('kind') or 'another kind'} of {manifest.get('apiVersion') or 'another group'}"
            raise WebhookError(
                f"the object of {self._resource} is {what}, which {model.__name__} does not describe: read `object` in "
                "place of `new` and `old`"
            )
        try:
            with running_function(f"the model {model.__name__}"):  # its validators are functions, too
                return cast("T", read_live(manifest, model))
        except ManifestError as error:
            raise UnreadableError(_problems(model, manifest)) from error

    @property
    def _resource(self) -> str:
        plural = str((self.raw.get("resource") or {}).get("resource") or "objects")
        return f"{plural}/{self.subresource}" if self.subresource else plural


OBJECT_SUBRESOURCES: Final = frozenset({"", "status", "ephemeralcontainers", "resize", "finalize", "approval"})
"""The subresources whose requests have the whole object; those of all others have an object of another kind."""


def warnings_of(request: AdmissionRequest[Any]) -> Iterator[str]:
    """Yield what has to be said to the user about a request whose handlers have been called."""
    stored = request.__dict__.get("_stored")
    if stored is not None and stored[1]:
        yield stored[1]


def _problems(model: type[BaseModel], manifest: Manifest) -> list[FieldError]:
    from pydantic import ValidationError

    try:
        validate_live(manifest, model)
    except ValidationError as error:
        return field_errors_of(error.errors(), manifest, model)
    raise WebhookError(f"{model.__name__} is not deterministic: it rejected and then accepted the same object")
