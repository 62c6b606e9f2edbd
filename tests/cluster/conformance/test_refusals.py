"""Requests that the embedded cluster rejects and a real server accepts.

Each marker is a row of the list in `docs/testing/embedded-cluster.md`, which `scripts/generate/refusals.py` writes.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.errors import BadRequestError, InvalidError, NotFoundError
from ocf.objects import ObjectKey

if TYPE_CHECKING:
    from tests.cluster.conformance.conftest import Env


def gizmos(schema: dict[str, Any], *, group: str) -> dict[str, Any]:
    """Return a definition of a kind that no other test uses."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gizmos.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Gizmo", "plural": "gizmos"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


LARGE: Final = "self.link.matches('(abcdefghijk){1000}')"
"""A rule whose regular expression needs 11 000 instructions."""


def ruled(**rule: Any) -> dict[str, Any]:
    """Return a definition of a kind whose spec has a rule."""
    properties = {"size": {"type": "integer"}, "link": {"type": "string", "maxLength": 9}}
    spec = {"type": "object", "properties": properties, "x-kubernetes-validations": [rule]}
    return gizmos({"type": "object", "properties": {"spec": spec}}, group="ruled.example.com")


@pytest.mark.refused(
    "evaluate regular expressions that need more than 10000 instructions in CEL expressions",
    "rewrite the expression without it, or test it against a real API server",
)
async def test_rules_with_large_regular_expressions_are_accepted(
    env: Env, unless_refused: AbstractContextManager[None]
) -> None:
    with unless_refused:
        given = ruled(rule=LARGE)
        await env.cluster.create(given, field_manager="author", dry_run=True)


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param({"rule": "isURL(self.link)"}, id="about addresses"),
        pytest.param({"rule": "self.?size.orValue(1) > 0"}, id="with optional values"),
        pytest.param(
            {"rule": "!oldSelf.hasValue() || self.size >= oldSelf.value().size", "optionalOldSelf": True},
            id="with an optional previous value",
        ),
    ],
)
async def test_rules_of_newer_releases_are_accepted(env: Env, rule: dict[str, Any]) -> None:
    await env.cluster.create(ruled(**rule), field_manager="author", dry_run=True)


async def test_api_services_are_validated(env: Env) -> None:
    spec = {"group": "conformance.example.com", "version": "v1", "groupPriorityMinimum": 0, "versionPriority": 1}
    named = {"metadata": {"name": "v1.conformance.example.com"}, "spec": spec}
    manifest = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", **named}
    with pytest.raises(InvalidError, match=r"spec\.groupPriorityMinimum: Invalid value: 0: must be positive"):
        await env.cluster.create(manifest, field_manager="author")


async def test_rejected_definitions_are_not_stored(env: Env) -> None:
    definition = ruled(rule=LARGE)
    with suppress(BadRequestError):
        await env.cluster.create(definition, field_manager="author", dry_run=not env.may_reject)

    with pytest.raises(NotFoundError):
        await env.cluster.get(ObjectKey.of(definition))
