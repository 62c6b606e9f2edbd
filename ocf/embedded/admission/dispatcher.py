"""Asking admission webhooks between the planning of a write and its storing.

The questions and the meaning of the answers are `admission_reviews`'; here is who asks whom in which order, and what
happens when nobody answers. How a question travels is a protocol, so that a test may answer without a network.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, Protocol, TypeVar

from ocf.cluster.protocol import Subresource
from ocf.embedded.admission import review as reviews
from ocf.embedded.admission.errors import UnansweredError
from ocf.embedded.admission.matching import WebhookCall, calls
from ocf.embedded.registry.conversion import convert
from ocf.embedded.registry.pending_write import MovedError, PendingWrite, Phase, Review
from ocf.embedded.registry.registry import Registry
from ocf.embedded.registry.request_checks import held
from ocf.errors import ApiError, api_error
from ocf.objects import Manifest, copy_json

__all__ = ["AdmissionClient", "Dispatcher"]

Result = TypeVar("Result")

_MOST_TRIES: Final = 10


class AdmissionClient(Protocol):
    """Asks admission webhooks."""

    async def ask(self, webhook: Mapping[str, Any], question: Manifest, *, seconds: float) -> Any:
        """Send an AdmissionReview to a webhook and return its answer.

        Args:
            webhook: The webhook's entry in its configuration; `clientConfig` says where it is.
            question: The AdmissionReview with the request.
            seconds: How long it may take.

        Returns:
            The answer, an AdmissionReview with the response if the webhook is a good one.

        Raises:
            UnansweredError: If there is no answer.
        """
        ...


class Dispatcher:
    """Drives writes past the webhooks.

    Args:
        core: The server.
        admission: Who asks; None asks over HTTPS.
    """

    def __init__(self, core: Registry, admission: AdmissionClient | None) -> None:
        self._core = core
        self._admission = admission

    async def admitted(self, plan: Callable[[], PendingWrite[Result]]) -> tuple[Result, bool]:
        """Do a write, asking every webhook that it concerns.

        Args:
            plan: Begins the write; called again if somebody else wrote the object while a webhook thought.

        Returns:
            What the write returns, and whether it changed anything; others may have, while it waited.

        Raises:
            ApiError: As a webhook or the server refuses it.
        """
        for _ in range(_MOST_TRIES):
            try:
                return await self._drive(plan())
            except MovedError:
                continue
        raise api_error("the object is written too often for its webhooks to keep up", code=409, reason="Conflict")

    async def _drive(self, write: PendingWrite[Result]) -> tuple[Result, bool]:
        before = self._core.store.version
        try:
            review = next(write)
            while True:
                answer = await self._reviewed(review)
                before = self._core.store.version
                review = write.send(answer)
        except StopIteration as stop:
            return stop.value, self._core.store.version != before
        finally:
            write.close()

    async def _reviewed(self, review: Review) -> Manifest | None:
        concerned = calls(self._core, review)
        if review.options.dry_run:
            for refusal in filter(None, map(reviews.refuses_dry_run, concerned)):
                raise refusal
        if review.phase is Phase.VALIDATING:
            answers = await asyncio.gather(*(self._validate(call, review) for call in concerned))
            for refusal in filter(None, answers):
                raise refusal
            return review.object
        return await self._mutate(concerned, review)

    async def _validate(self, call: WebhookCall, review: Review) -> ApiError | None:
        try:
            await self._response(call, review)
        except ApiError as error:
            return error
        return None

    async def _mutate(self, concerned: list[WebhookCall], review: Review) -> Manifest | None:
        again: list[WebhookCall] = []
        asked: list[WebhookCall] = []
        for call in concerned:
            changed = await self._change(call, review)
            if changed is not review.object:
                review = replace(review, object=changed)
                # Whoever was asked before has not seen this change.
                again = [earlier for earlier in asked if earlier.is_asked_again]
            asked.append(call)
        for call in again:
            review = replace(review, object=await self._change(call, review))
        return review.object

    async def _change(self, call: WebhookCall, review: Review) -> Manifest | None:
        """Ask one mutating webhook; return the object as it wants it, the same one if it wants nothing."""
        response = await self._response(call, review)
        if response is None or review.object is None:
            return review.object
        try:
            return self._patched(call, review, review.object, response)
        except ValueError as error:
            raise api_error(f"Internal error occurred: {error}", code=500, reason="InternalError") from error

    @staticmethod
    def _patched(call: WebhookCall, review: Review, manifest: Manifest, response: Mapping[str, Any]) -> Manifest:
        if review.options.subresource is Subresource.SCALE:
            return reviews.patched_object(manifest, response)
        seen = convert(manifest, review.resource, call.resource)
        wanted = reviews.patched_object(seen, response)
        if wanted is seen:
            return manifest
        return held(
            convert(reviews.of_its_kind(wanted, call.resource), call.resource, review.resource), review.resource
        )

    async def _response(self, call: WebhookCall, review: Review) -> Mapping[str, Any] | None:
        """Ask a webhook; None where it could not be asked and that does not matter."""
        uid = self._core.new_uid()
        try:
            answer = await self._ask(call, copy_json(reviews.question(call, review, uid)))
            response, problem = reviews.response_of(answer, uid)
        except UnansweredError as error:
            response, problem = {}, str(error)
        if problem:
            if call.is_ignored_when_failing:
                return None
            raise reviews.failure(call, problem)
        for text in reviews.warnings_of(response):
            review.options.warn(text)
        refusal = reviews.denial(call, response)
        if refusal is not None:
            raise refusal
        return response

    async def _ask(self, call: WebhookCall, question: Manifest) -> Any:
        if self._admission is None:
            from ocf.embedded.admission.webhook_client import HttpAdmissionClient

            self._admission = HttpAdmissionClient()
        return await self._admission.ask(call.webhook, question, seconds=call.seconds)
