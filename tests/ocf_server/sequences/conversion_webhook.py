"""A conversion webhook with correct and incorrect responses, chosen by the path of its URL."""

import copy
from collections.abc import Callable, Mapping
from typing import Any, Final

__all__ = ["RESPONSES", "response"]

Json = dict[str, Any]


def _converted(manifest: Json, api_version: str) -> Json:
    """Convert between an address (v1), and a street and a city (v2)."""
    out = {**copy.deepcopy(manifest), "apiVersion": api_version}
    spec = manifest.get("spec") or {}
    if api_version.endswith("v2"):
        street, _, city = spec.get("address", "").partition(", ")
        out["spec"] = {"street": street, "city": city}
    else:
        out["spec"] = {"address": f"{spec.get('street')}, {spec.get('city')}"}
    return out


def _changed(**fields: Any) -> Callable[[Json], Json]:
    """Return a change of the response that replaces fields of its objects."""
    return lambda given: {**given, "convertedObjects": [{**each, **fields} for each in given["convertedObjects"]]}


def _renamed(**fields: Any) -> Callable[[Json], Json]:
    """Return a change of the response that replaces metadata of its objects."""

    def change(given: Json) -> Json:
        found = [{**each, "metadata": {**each["metadata"], **fields}} for each in given["convertedObjects"]]
        return {**given, "convertedObjects": found}

    return change


def _replaced(**fields: Any) -> Callable[[Json], Json]:
    """Return a change of the response itself."""
    return lambda given: {**given, **fields}


RESPONSES: Final[Mapping[str, Callable[[Json], Json]]] = {
    "good": lambda given: given,
    "labels": _renamed(labels={"a": "b"}, annotations={"c": "d"}),
    "finalizers": _renamed(finalizers=["example.com/x"], generation=9),
    "pruned": _changed(extra={"a": 1}),
    "version": _changed(apiVersion="conversion.example.com/v3"),
    "kind": _changed(kind="Other"),
    "name": _renamed(name="other"),
    "namespace": _renamed(namespace="other"),
    "uid": _renamed(uid="other"),
    "bad-label": _renamed(labels={"a": "b c"}),
    "bad-annotation": _renamed(annotations={"a b": "c"}),
    "number-label": _renamed(labels={"a": 1}),
    "list-annotations": _renamed(annotations=["x"]),
    "no-metadata": _changed(metadata=None),
    "other-uid": _replaced(uid="other"),
    "none": _replaced(convertedObjects=[]),
    "failure": _replaced(result={"status": "Failure", "message": "no such street"}),
    "no-result": _replaced(result={}),
}
"""Changes of a correct response, by the last part of the path."""


def response(path: str, review: Json) -> Json:
    """Return the body of a response.

    Args:
        path: The path of the URL.
        review: The ConversionReview.

    Returns:
        The ConversionReview with the response. Objects are converted to the storage version correctly in any case, so
        that an object can be created.
    """
    request = review["request"]
    version = request["desiredAPIVersion"]
    found = [_converted(each, version) for each in request["objects"]]
    given = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": found}
    change = RESPONSES[path.rpartition("/")[2]]
    head = {"kind": review["kind"], "apiVersion": review["apiVersion"]}
    return {**head, "response": given if version.endswith("v2") else change(given)}
