"""Values that only JSON makes plain: a cluster stores what a request carries, and what none can carry is rejected."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.errors import BadRequestError, NotFoundError
from tests.cluster.conformance.conftest import WIDGET

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ocf.objects import Manifest
    from tests.cluster.conformance.conftest import Env


class Phase(StrEnum):
    READY = "Ready"


ODD: Final = {"phase": Phase.READY, "sizes": (1, 2)}
STORED: Final = {"phase": "Ready", "sizes": [1, 2]}
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)


def gadget(env: Env, data: Any) -> Manifest:
    key = env.key("Gadget")
    return {"apiVersion": WIDGET, "kind": "Gadget", "metadata": {"name": key.name}, "data": data}


async def create(env: Env, data: Any) -> Manifest:
    return await env.cluster.create(gadget(env, data), field_manager="me")


async def apply(env: Env, data: Any) -> Manifest:
    return await env.cluster.apply(gadget(env, data), field_manager="me")


async def update(env: Env, data: Any) -> Manifest:
    live = await create(env, {})
    return await env.cluster.update({**live, "data": data}, field_manager="me")


async def merge_patch(env: Env, data: Any) -> Manifest:
    await create(env, {})
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager="me")
    return await env.cluster.patch(env.key("Gadget"), {"data": data}, options)


async def json_patch(env: Env, data: Any) -> Manifest:
    await create(env, {})
    options = PatchOptions(patch_type=PatchType.JSON, field_manager="me")
    operations = [{"op": "add", "path": "/data", "value": data}]
    return await env.cluster.patch(env.key("Gadget"), operations, options)


WRITES: Final = [
    pytest.param(create, "data", id="create"),
    pytest.param(apply, "data", id="apply"),
    pytest.param(update, "data", id="update"),
    pytest.param(merge_patch, "data", id="merge patch"),
    pytest.param(json_patch, r"\[0\].value", id="JSON patch"),
]


@pytest.mark.parametrize(("write", "path"), WRITES)
async def test_what_json_has_is_stored_as_a_request_carries_it(
    env: Env, write: Callable[[Env, Any], Awaitable[Manifest]], path: str
) -> None:
    del path
    answer = await write(env, ODD)
    live = await env.cluster.get(env.key("Gadget"))

    assert answer["data"] == live["data"] == STORED
    assert (type(live["data"]["phase"]), type(live["data"]["sizes"])) == (str, list)


@pytest.mark.parametrize(("write", "path"), WRITES)
async def test_what_json_does_not_have_is_rejected(
    env: Env, write: Callable[[Env, Any], Awaitable[Manifest]], path: str
) -> None:
    with pytest.raises(BadRequestError, match=rf"cannot be sent: {path}\.since: a datetime is not a JSON value; write"):
        await write(env, {"since": NOW, "other": 1})
    try:
        live = await env.cluster.get(env.key("Gadget"))
    except NotFoundError:
        return
    assert not live.get("data")


async def test_a_status_is_a_value_of_json(env: Env) -> None:
    live = await env.create("Widget")
    wanted = {**live, "status": {"ready": {1}}}
    with pytest.raises(
        BadRequestError, match=r"cannot be sent: status\.ready: a set is not a JSON value; write a list"
    ):
        await env.cluster.update(wanted, field_manager="me", subresource=Subresource.STATUS)
