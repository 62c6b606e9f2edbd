"""Declarations of webhooks that cannot work are errors, and what follows from the parameters of their functions."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from kubernetes.client import V1Pod

from ocf.cluster import Cluster
from ocf.errors import BuildError
from ocf.objects import Manifest
from ocf.runtime.admission import Match, Operation, Webhook

from .test_requests import NOT_YOURS, Counted, Request, checking, later


def two(_: Request, __: Cluster) -> None:
    """Take the cluster without waiting for it."""


async def three(_: Request, __: Cluster, ___: int) -> None:
    """Take too much."""


async def keyword(_: Request, *, limit: int) -> None:
    """Take what is never given."""


async def optional(_: Request, limit: int = 3) -> None:
    """Have a default of its own."""


class Called:
    """An object that can be called."""

    async def __call__(self, _: Request, __: Cluster) -> None:
        """Do nothing."""


async def takes(limit: int, _: Request, __: Cluster) -> None:
    """Do nothing."""


async def yields(_: Request) -> Any:
    yield NOT_YOURS


async def old_form(_: V1Pod, __: V1Pod | None, ___: Operation) -> list[Any]:
    return []


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        pytest.param({"validating": [two]}, "two is a plain function and takes the cluster", id="plain with cluster"),
        pytest.param({"mutating": [two]}, "two is a plain function and takes the cluster", id="plain that changes"),
        pytest.param(
            {"validating": [three]}, r"three must take one or two parameters, .* got \(_, __, ___\)", id="three"
        ),
        pytest.param({"validating": [lambda: None]}, r"must take one or two parameters, .* got \(\)", id="none"),
        pytest.param({"validating": [keyword]}, "keyword must take one or two parameters", id="a keyword"),
        pytest.param({"validating": [yields]}, "yields yields; a coroutine function returns", id="it yields"),
        pytest.param({"validators": [old_form]}, "old_form is a coroutine.* in `validating`", id="short form"),
        pytest.param({"defaulters": [later]}, "later is a coroutine.* in `mutating`", id="defaulter"),
        pytest.param({"name": "Side car"}, "the name must be a DNS label such as sidecar", id="name"),
        pytest.param({"failure_policy": "ignore"}, '"Fail" or "Ignore", got \'ignore\'', id="failure policy"),
        pytest.param({"reinvoke": True}, "reinvoke needs defaulters or `mutating`", id="reinvoke"),
        pytest.param(
            {"validators": [lambda *_: []], "match": Match(subresources=["", "eviction"])},
            "get whole objects, which pods/eviction does not have",
            id="short forms of another kind",
        ),
        pytest.param(
            {"match": Match(subresources=["eviction"], objects={"matchLabels": {"a": "b"}})},
            "never matches pods/eviction, whose objects have no labels",
            id="labels of an eviction",
        ),
        pytest.param(
            {"defaulters": [lambda _: None], "match": Match(operations=[Operation.DELETE])},
            "no function is called at the step default",
            id="defaulters of a delete",
        ),
        pytest.param(
            {"match": Match(conditions={"not-of-the-webhook-server": "true"})}, "is set by ocf", id="our condition"
        ),
    ],
)
def test_a_declaration_that_cannot_work_is_an_error(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(BuildError, match=problem):
        Webhook.of(V1Pod, **options)


@pytest.mark.parametrize(
    ("function", "reads_cluster"),
    [
        pytest.param(optional, False, id="a default"),
        pytest.param(lambda *_: None, False, id="any number"),
        pytest.param(Called(), True, id="an object"),
        pytest.param(partial(takes, 3), True, id="a partial function"),
        pytest.param(later, False, id="one parameter"),
    ],
)
def test_whether_a_function_takes_the_cluster_follows_from_its_parameters(
    function: Any, *, reads_cluster: bool
) -> None:
    assert checking(function).reads_cluster is reads_cluster


class Own(V1Pod):
    """A model of an author, derived from one of the client."""


@pytest.mark.parametrize("model", [V1Pod, Own])
def test_a_model_of_the_client_names_its_kind(model: type[V1Pod]) -> None:
    webhook = Webhook.of(model)
    assert (webhook.group, webhook.version, webhook.kind, webhook.plural) == ("", "v1", "Pod", "pods")


def test_a_model_of_no_kind_is_an_error() -> None:
    from kubernetes.client import V1PodSpec

    with pytest.raises(BuildError, match="V1PodSpec is not the model of a built-in kind"):
        Webhook.of(V1PodSpec)
    with pytest.raises(BuildError, match="Counted declares no group and version"):
        Webhook.of(Counted)


@pytest.mark.parametrize("part", ["group", "version", "kind", "plural"])
def test_a_webhook_is_for_one_kind(part: str) -> None:
    """One for all kinds would be called for whatever any cluster needs to work."""
    changed: dict[str, Any] = {part: "*"}
    webhook: Webhook[Manifest] = Webhook("apps", "v1", "Deployment", "deployments")
    with pytest.raises(BuildError, match=f'{part} must be that of one kind, got "\\*"'):
        replace(webhook, **changed)
