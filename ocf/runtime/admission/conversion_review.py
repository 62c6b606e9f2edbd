"""Processing of conversion reviews: a ConversionReview with a request in, one with the response out.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#webhook-request-and-response.

A response has either all objects or none: the API server does not accept fewer objects than it sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.objects.manifest import split_api_version
from ocf.runtime.crds import VersionedResource

__all__ = ["conversion_failure", "conversion_review"]

_HEAD: Final = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}


def conversion_review(resource: VersionedResource, question: Mapping[str, Any]) -> Manifest:
    """Respond to a conversion request of an API server.

    Args:
        resource: The resource of the objects.
        question: The ConversionReview; not changed.

    Returns:
        A ConversionReview whose response has all objects in the desired version, in their order; or a failure that
        names the first object that cannot be converted, and its fields. The API server shows it to the client.

    Example:
        >>> from ocf.runtime.crds import CRDVersion, VersionedResource
        >>> from pydantic import BaseModel
        >>> class Quota(BaseModel):
        ...     limit: int = 1
        >>> versions = [CRDVersion("v1", Quota), CRDVersion("v2", Quota, stored=True)]
        >>> quotas = VersionedResource("example.com", versions)
        >>> quota = {"apiVersion": "example.com/v1", "kind": "Quota", "metadata": {"name": "small"}}
        >>> request = {"uid": "1", "desiredAPIVersion": "example.com/v2", "objects": [quota]}
        >>> response = conversion_review(quotas, {"request": request})["response"]
        >>> response["result"]["status"], response["convertedObjects"][0]["apiVersion"]
        ('Success', 'example.com/v2')
    """
    request = question.get("request")
    if not isinstance(request, dict):
        return conversion_failure("", "the ConversionReview has no request")
    uid = str(request.get("uid") or "")
    if problem := next(_request_problems(resource, request), ""):
        return conversion_failure(uid, problem)
    version = split_api_version(request["desiredAPIVersion"])[1]
    try:
        converted = [resource.convert(each, version) for each in request["objects"]]
    except ConfigError as error:
        return conversion_failure(uid, str(error))
    except RecursionError:
        return conversion_failure(uid, f"{resource.name}: an object is nested too deeply")
    return {**_HEAD, "response": {"uid": uid, "result": {"status": "Success"}, "convertedObjects": converted}}


def conversion_failure(uid: str, message: str) -> Manifest:
    """Return a response that fails a request.

    Args:
        uid: UID of the request; empty if it has none.
    """
    result = {"status": "Failure", "message": message}
    return {**_HEAD, "response": {"uid": uid, "result": result, "convertedObjects": []}}


def _request_problems(resource: VersionedResource, request: Mapping[str, Any]) -> Iterator[str]:
    desired, objects = request.get("desiredAPIVersion"), request.get("objects")
    if not isinstance(desired, str) or split_api_version(desired)[0] != resource.group:
        yield f"request.desiredAPIVersion must be a version of {resource.group}, got {desired!r}"
    if not isinstance(objects, list):
        yield f"request.objects must be a list, got {type(objects).__name__}"
        return
    for position, each in enumerate(objects):
        known = isinstance(each, dict) and isinstance(each.get("metadata", {}), dict)
        seen = (each.get("apiVersion"), each.get("kind")) if known else ("", "")
        if split_api_version(str(seen[0]))[0] != resource.group or seen[1] != resource.kind:
            shown = " ".join(map(str, filter(None, seen))) or "another value"
            yield f"request.objects[{position}] must be a {resource.kind} of {resource.group}, got {shown}"
