"""A webhook that fails: its failure policy decides also where the API server has reached it, and it is never silent.

Pods without the sidecar that the webhook stands for, and nothing that shows it: https://github.com/kumahq/kuma/issues/3293
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, Final, Literal

import pytest
from prometheus_client import CollectorRegistry

from ocf.objects import Manifest
from ocf.runtime.admission import AdmissionRequest, Deny, Step, Webhook, Webhooks, serving

from .test_webhook_server import HOST, QUESTION, Given, client

Request = AdmissionRequest[Manifest]
PATH: Final = "/validate/example.com/shops"


async def fails(_: Request) -> None:
    raise LookupError("the token is hunter2")


def fails_in_a_thread(_: Request) -> None:
    raise LookupError("the token is hunter2")


async def hangs(_: Request) -> None:
    await asyncio.Event().wait()


async def denies(_: Request) -> Deny:
    return Deny("closed", code=500)


async def asked(function: Any, policy: Literal["Fail", "Ignore"], step: Step) -> tuple[Manifest, dict[str, float]]:
    """Return the response, and the counted failures."""
    webhook: Webhook[Manifest] = Webhook(
        "example.com",
        "v1",
        "Shop",
        "shops",
        mutating=[function] if step is Step.DEFAULT else (),
        validating=[function] if step is Step.VALIDATE else (),
        failure_policy=policy,
        timeout=timedelta(seconds=1),
    )
    given, registry = Given(), CollectorRegistry()
    async with (
        serving(Webhooks("shops", [webhook]), certificates=given, host=HOST, port=0, registry=registry) as server,
        client(given.pair) as session,
        session.post(server.url + webhook.path(step), json=QUESTION) as answer,
    ):
        found: Manifest = (await answer.json())["response"]
    names = ("ocf_webhook_failures_total", "ocf_webhook_ignored_failures_total")
    values = {one: registry.get_sample_value(one, {"webhook": webhook.path(step)}) or 0 for one in names}
    return found, values


@pytest.mark.parametrize("step", list(Step))
@pytest.mark.parametrize(
    ("function", "code", "text"),
    [
        pytest.param(fails, 500, "fails failed with LookupError, see the operator's log", id="an error"),
        pytest.param(fails_in_a_thread, 500, "fails_in_a_thread failed with LookupError", id="an error in a thread"),
        pytest.param(hangs, 504, "hangs did not return within 0.9 seconds", id="no end"),
    ],
)
async def test_a_function_that_fails_rejects_or_warns(function: Any, code: int, text: str, step: Step) -> None:
    rejected, counted = await asked(function, "Fail", step)
    assert (rejected["allowed"], rejected["status"]["code"]) == (False, code)
    assert text in rejected["status"]["message"]
    assert list(counted.values()) == [1, 0]

    allowed, counted = await asked(function, "Ignore", step)
    (warning,) = allowed["warnings"]
    assert allowed["allowed"]
    assert text in warning
    assert warning.endswith("; the request was allowed without this webhook")
    assert "hunter2" not in warning + rejected["status"]["message"]
    assert list(counted.values()) == [1, 1]


async def test_a_rejection_is_not_a_failure_whatever_its_code() -> None:
    for policy in ("Fail", "Ignore"):
        rejected, counted = await asked(denies, policy, Step.VALIDATE)
        assert (rejected["allowed"], rejected["status"]["code"]) == (False, 500)
        assert list(counted.values()) == [0, 0]
