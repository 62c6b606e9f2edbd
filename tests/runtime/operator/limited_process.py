"""A process that may open 1024 files and runs an operator of shops with webhooks: the child of a test.

It writes the URLs of its endpoints and of its webhooks to the standard output, and runs until its input ends.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from ocf.component import Component, ReconcileContext
from ocf.runtime.admission import FieldError, Operation, Url, Webhook, invalid
from ocf.runtime.crds import CRDVersion, crd

FILES: Final = 1024
LEFT: Final = FILES // 2
HOST: Final = "127.0.0.1"


class ShopSpec(BaseModel):
    motto: str = "open"


class ShopStatus(BaseModel):
    seen: str = ""


class Shop(BaseModel):
    spec: ShopSpec = ShopSpec()
    status: ShopStatus | None = None


DEFINITION: Final = crd("held.example.com", CRDVersion("v1", Shop))


def validate(new: Shop, old: Shop | None, operation: Operation) -> Iterator[FieldError]:
    """Reject one motto."""
    del old, operation
    if new.spec.motto == "closed":
        yield invalid("spec.motto", new.spec.motto, "must be inviting")


def components(_: Shop) -> list[Component]:
    """Return nothing: `report` shows that a shop was reconciled."""
    return []


def report(context: ReconcileContext, shop: Shop, _: object) -> None:
    """Write the motto into the status, where as many files can be opened as are left to the operator."""
    with ExitStack() as stack:
        for _ in range(LEFT):
            stack.enter_context(Path(os.devnull).open())
    context.status["seen"] = shop.spec.motto


async def main(kubeconfig: Path, namespace: str) -> None:
    """Run the operator."""
    from ocf.cluster.client import ApiServerCluster
    from ocf.runtime.operator import Listen, ManagerOptions, Operator, OwnerType, WebhookOptions, running

    webhook = Webhook.of(Shop, DEFINITION, validators=[validate])
    operator = Operator(
        name="shops", owner=OwnerType.of(Shop, DEFINITION), components=components, report=report, webhooks=[webhook]
    )
    admission = WebhookOptions(address=Url(f"https://{HOST}"), namespace=namespace, host=HOST, port=0, register=True)
    options = ManagerOptions(listen=Listen(port=0, host=HOST), admission=admission)
    async with (
        await ApiServerCluster.connect(kubeconfig) as cluster,
        running(cluster, operator, options=options) as one,
    ):
        await one.started()
        assert one.endpoints is not None
        assert one.webhooks is not None
        sys.stdout.write(json.dumps({"endpoints": one.endpoints.url, "webhooks": one.webhooks.url}) + "\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
