"""Paths of the webhook server, and the functions that respond to their requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ocf.objects.durations import parse_duration
from ocf.runtime.admission.author_calls import Calls
from ocf.runtime.admission.conversion_review import conversion_failure, conversion_review
from ocf.runtime.admission.review import Answer, failure, respond
from ocf.runtime.admission.webhook_configurations import conversion_path
from ocf.runtime.admission.webhooks import Step, Webhook, Webhooks

if TYPE_CHECKING:
    from ocf.runtime.crds import VersionedResource

__all__ = ["Route", "routes"]

# An API server accepts requests of up to 3 MB; an AdmissionReview contains the object twice.
_LONGEST_ADMISSION: Final = 7 * 1024 * 1024
# A ConversionReview may contain all objects of a list.
_LONGEST_CONVERSION: Final = 128 * 1024 * 1024
_CONVERSION_TIMEOUT: Final = timedelta(seconds=30)  # fixed in the API server
_LONGEST_TIMEOUT: Final = timedelta(seconds=30)  # the maximum of the API
_FRACTION: Final = 0.9  # so that the answer still arrives


@dataclass(frozen=True, slots=True)
class Route:
    """A path of the webhook server.

    Args:
        longest: Maximum number of bytes of a request.
        respond: Returns the response to a review, given it and where its functions run.
        reject_late: Returns the response to a request whose processing takes too long, given its UID and a message.
    """

    name: str
    review: str
    timeout: timedelta
    longest: int
    respond: Callable[[Mapping[str, Any], Calls], Awaitable[Answer]]
    reject_late: Callable[[str, str], Answer]

    def seconds(self, asked: str) -> float:
        """Return within how many seconds a request is answered: nine tenths of the time that its API server waits.

        Args:
            asked: The parameter `timeout` of the request, a duration as in Go; anything else stands for the timeout of
                the route.
        """
        try:
            waits = parse_duration(asked)
        except ValueError:
            waits = self.timeout
        if not timedelta(0) < waits <= _LONGEST_TIMEOUT:
            waits = self.timeout
        return waits.total_seconds() * _FRACTION


def routes(webhooks: Webhooks) -> dict[str, Route]:
    """Return the routes of webhooks, by their paths."""
    admission = {
        webhook.path(step): _admission(webhook, step, webhooks.timeout_of(webhook))
        for webhook in webhooks.webhooks
        for step in webhook.steps
    }
    return admission | {conversion_path(resource): _conversion(resource) for resource in webhooks.conversions}


def _admission(webhook: Webhook[Any], step: Step, timeout: timedelta) -> Route:
    return Route(
        name=webhook.qualified_name(step),
        review="an AdmissionReview",
        timeout=timeout,
        longest=_LONGEST_ADMISSION,
        respond=partial(respond, webhook, step),
        reject_late=lambda uid, message: failure(webhook, uid, 504, message),
    )


def _conversion(resource: VersionedResource) -> Route:
    return Route(
        name=f"convert.{resource.name}",
        review="a ConversionReview",
        timeout=_CONVERSION_TIMEOUT,
        longest=_LONGEST_CONVERSION,
        respond=partial(_converted, resource),
        reject_late=lambda uid, message: Answer(conversion_failure(uid, message), failed=True),
    )


async def _converted(resource: VersionedResource, question: Mapping[str, Any], calls: Calls) -> Answer:
    answer = await calls.in_thread(partial(conversion_review, resource, question))
    return Answer(answer, failed=answer["response"]["result"]["status"] != "Success")
