"""ConversionReviews: requests to conversion webhooks, and the reading of their responses.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/.
Errors have the texts of a real API server. No I/O is done here.
"""

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from ocf.errors import ApiError, api_error
from ocf.objects import Manifest, copy_json
from ocf.objects.field_errors import FieldError, invalid
from ocf.objects.name_validation import label_value, qualified_name
from ocf.schema.builtin import ApiResource

__all__ = ["ConversionCache", "ConversionNeeded", "conversion_review", "converted_objects", "converting", "failed"]

Result = TypeVar("Result")

_MAX_CACHED: Final = 100_000
_SUPPORTED: Final = ("v1", "v1beta1")
_GO_TYPES: Final = {str: "string", bool: "bool", dict: "map[string]interface {}", list: "[]interface {}"}


class ConversionNeeded(Exception):  # noqa: N818 (a request to the caller, not an error)
    """A computation needs objects in another version, which only a conversion webhook can return.

    The caller calls the webhook, adds its response to the cache, and repeats the computation.

    Args:
        webhook: The `spec.conversion.webhook` of their definition.
    """

    def __init__(self, manifests: Sequence[Manifest], target: ApiResource, webhook: Mapping[str, Any]) -> None:
        super().__init__(f"{len(manifests)} objects are needed in version {target.api_version}")
        self.manifests, self.target, self.webhook = manifests, target, webhook


def converting(compute: Callable[[], Result]) -> Generator[ConversionNeeded, Manifest | None, Result]:
    """Compute a value, and pause while a conversion webhook is called.

    Args:
        compute: The computation; it is repeated after each call, so it must not change anything.
    """
    while True:
        try:
            return compute()
        except ConversionNeeded as needed:
            request = needed
        yield request


@dataclass(slots=True)
class ConversionCache:
    """Objects that conversion webhooks have returned.

    A real API server keeps converted objects for reads in its watch caches.
    """

    _found: dict[tuple[str, str], Manifest] = field(default_factory=dict)

    def clone(self) -> "ConversionCache":
        """Return an independent cache of the same objects."""
        return ConversionCache(self._found.copy())

    def find(self, manifest: Manifest, api_version: str) -> Manifest | None:
        """Return an object in another version; None if it is not in the cache. It must not be changed."""
        # By content, because a write is converted before it has a resourceVersion.
        return self._found.get((api_version, json.dumps(manifest, sort_keys=True)))

    def add(self, manifest: Manifest, api_version: str, converted: Manifest) -> None:
        """Add an object that a webhook returned; the oldest entries are removed if there are too many."""
        while len(self._found) >= _MAX_CACHED:
            del self._found[next(iter(self._found))]
        self._found[api_version, json.dumps(manifest, sort_keys=True)] = converted

    def clear(self) -> None:
        """Remove all objects, because a definition has changed."""
        self._found.clear()


def conversion_review(needed: ConversionNeeded, uid: str) -> Manifest:
    """Return the ConversionReview to send to a webhook.

    Args:
        uid: Identifies the request; the response must repeat it.

    Raises:
        ApiError: If the webhook supports no version of ConversionReview that the API server supports.
    """
    given = needed.webhook.get("conversionReviewVersions") or ()
    version = next((each for each in given if each in _SUPPORTED), None)
    if version is None:
        raise api_error("no supported conversion review versions", code=500)
    request = {
        "uid": uid,
        "desiredAPIVersion": needed.target.api_version,
        "objects": [copy_json(manifest) for manifest in needed.manifests],
    }
    return {"kind": "ConversionReview", "apiVersion": f"apiextensions.k8s.io/{version}", "request": request}


def converted_objects(needed: ConversionNeeded, body: Any, review: Manifest) -> list[Manifest]:
    """Return the objects in the response of a webhook.

    Args:
        body: The body of the response, as JSON.

    Returns:
        The objects in the target version, with the metadata of those that were sent, except labels and annotations.

    Raises:
        ApiError: If the webhook could not convert the objects, or its response is invalid.
    """
    response = _response(needed, body, review)
    found = response.get("convertedObjects") or []
    if len(found) != len(needed.manifests):
        counts = f"{len(found)} objects, expected {len(needed.manifests)}"
        raise failed(needed, f"returned {counts}")
    return [_checked(needed, *pair) for pair in zip(needed.manifests, found, strict=True)]


def failed(needed: ConversionNeeded, problem: str) -> ApiError:
    """Return the error of a conversion that failed."""
    source = needed.manifests[0]
    group, _, version = source["apiVersion"].rpartition("/")
    return api_error(f"conversion webhook for {group}/{version}, Kind={source['kind']} {problem}", code=500)


def _response(needed: ConversionNeeded, body: Any, review: Manifest) -> Mapping[str, Any]:
    body = body if isinstance(body, dict) else {}
    expected = review["apiVersion"], review["kind"]
    found = str(body.get("apiVersion") or ""), str(body.get("kind") or "")
    # v1beta1 webhooks need not repeat kind and uid.
    strict = review["apiVersion"].endswith("/v1")
    if strict and found != expected:
        texts = [f"{version}, Kind={kind}" for version, kind in (expected, found)]
        raise failed(needed, f"failed: expected webhook response of {texts[0]}, got {texts[1]}")
    response = body.get("response")
    if not isinstance(response, dict):
        raise failed(needed, "failed: no response provided")
    uid = review["request"]["uid"]
    if strict and response.get("uid") != uid:
        raise failed(needed, f'failed: expected response.uid="{uid}", got "{response.get("uid") or ""}"')
    result = response.get("result")
    result = result if isinstance(result, dict) else {}
    if result.get("status") != "Success":
        status = f"response.result.status was '{result.get('status') or ''}', not 'Success'"
        raise failed(needed, f"failed: {result.get('message') or status}")
    return response


def _checked(needed: ConversionNeeded, original: Manifest, converted: Any) -> Manifest:
    converted = converted if isinstance(converted, dict) else {}
    wanted = needed.target.api_version
    version, kind = str(converted.get("apiVersion") or ""), str(converted.get("kind") or "")
    if version != wanted:
        problem = f"invalid groupVersion (expected {wanted}, received {version})"
        raise failed(needed, f"returned invalid object at index 0: {problem}")
    if kind != original["kind"]:
        problem = f"invalid kind (expected {original['kind']}, received {kind})"
        raise failed(needed, f"returned invalid object at index 0: {problem}")
    metadata = converted.get("metadata")
    seen = metadata if isinstance(metadata, dict) else {}
    for name, shown in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        before, after = original["metadata"].get(name) or "", seen.get(name) or ""
        if before != after:
            raise failed(needed, f"returned invalid object: must have the same {shown}: {before} != {after}")
    if metadata is None:
        raise failed(needed, "returned invalid metadata: missing metadata in converted object")
    if not isinstance(metadata, dict):
        raise failed(needed, f"returned invalid metadata: invalid metadata of type {_go(metadata)} in converted object")
    return {**converted, "metadata": _metadata(needed, original["metadata"], metadata)}


def _metadata(needed: ConversionNeeded, original: Mapping[str, Any], converted: Mapping[str, Any]) -> Manifest:
    """Return the metadata of the original object with the labels and annotations of the converted one."""
    out: Manifest = copy_json({name: item for name, item in original.items() if name not in ("labels", "annotations")})
    for name in ("labels", "annotations"):
        given = converted.get(name)
        if given is None:
            continue
        if not isinstance(given, dict):
            problem = f"invalid metadata.{name} of type {_go(given)} in converted object"
            raise failed(needed, f"returned invalid metadata: {problem}")
        for key, value in given.items():
            if not isinstance(value, str):
                problem = f"metadata.{name}[{key}] must be a string, but is {_go(value)} in converted object"
                raise failed(needed, f"returned invalid metadata: {problem}")
        problems = [str(error) for error in _errors(name, given)] if given != (original.get(name) or {}) else []
        if problems:
            text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
            raise failed(needed, f"returned invalid metadata: {text}")
        out[name] = given
    return out


def _errors(name: str, given: Mapping[str, str]) -> list[FieldError]:
    if name == "annotations":
        # The API server spells the path in this way.
        path = "metadata.annotation"
        return [invalid(path, key, problem) for key in given for problem in qualified_name(key.lower())]
    keys = [invalid("metadata.labels", key, problem) for key in given for problem in qualified_name(key)]
    return [
        *keys,
        *(invalid("metadata.labels", value, text) for value in given.values() for text in label_value(value)),
    ]


def _go(value: Any) -> str:
    return _GO_TYPES.get(type(value), "float64" if isinstance(value, float) else "int64")
