"""Dispatcher of admission: calls webhooks and enforces policies before a write is stored.

`ocf_server.admission.review` builds AdmissionReviews and reads the responses; this module decides on the order of
the calls and handles webhooks that do not respond.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ocf.errors import ApiError, StatusCause, api_error
from ocf.objects import Manifest, copy_json
from ocf.objects.json_equality import equal_json
from ocf_server.admission import review as reviews
from ocf_server.admission.matching import WebhookCall, matching_call, webhooks
from ocf_server.api.status_errors import forbidden
from ocf_server.api.webhook_client import AdmissionClient, UnansweredError
from ocf_server.registry.conversion import ConversionWebhooks
from ocf_server.registry.conversion_review import ConversionNeeded
from ocf_server.registry.pending_write import ObjectChangedError, PendingWrite, Phase, Review
from ocf_server.registry.registry import Registry
from ocf_server.registry.request_checks import decode

if TYPE_CHECKING:
    from ocf_server.admission.invocations import Invocation, Misconfiguration
    from ocf_server.admission.mutations import MutationEngine, MutationOutcome
    from ocf_server.admission.policies import PolicyEngine

__all__ = ["Dispatcher"]

Result = TypeVar("Result")

# Without a limit, two webhooks that write the object themselves would keep a request forever.
_MAX_ATTEMPTS: Final = 10


class Dispatcher:
    """Runs writes, calls the admission webhooks that match them, and enforces admission policies.

    Args:
        registry: The registry with the webhook configurations and policies.
    """

    def __init__(self, registry: Registry, client: AdmissionClient, conversions: ConversionWebhooks) -> None:
        self._registry = registry
        self._client = client
        self._conversions = conversions
        self._policies: PolicyEngine | None = None
        self._mutations: MutationEngine | None = None

    async def run(self, plan: Callable[[], PendingWrite[Result]]) -> tuple[Result, bool]:
        """Run a write, with all webhooks and policies that match it.

        Args:
            plan: Starts the write; called again if another request changed the object during the call of a webhook.

        Returns:
            The result of the write, and whether the write itself changed anything.

        Raises:
            ApiError: If a webhook or a policy denies the write, or the API server rejects it.
        """
        for _ in range(_MAX_ATTEMPTS):
            try:
                return await self._converted(plan)
            except ObjectChangedError:
                continue
        message = (
            f"the object was changed by other requests during {_MAX_ATTEMPTS} attempts to call its webhooks; retry"
        )
        raise api_error(message, code=409, reason="Conflict")

    async def _converted(self, plan: Callable[[], PendingWrite[Result]]) -> tuple[Result, bool]:
        """Run a write; begin again after each conversion of objects before admission."""
        while True:
            try:
                return await self._drive(plan())
            except ConversionNeeded as needed:
                request = needed
            await self._conversions.call(request)

    async def _drive(self, write: PendingWrite[Result]) -> tuple[Result, bool]:
        before = self._registry.store.version
        try:
            review = next(write)
            while True:
                if isinstance(review, ConversionNeeded):
                    await self._conversions.call(review)
                    admitted = None
                else:
                    admitted = await self._admit(review)
                # Taken anew before each step: only the last step writes, and others may have written during the calls.
                before = self._registry.store.version
                review = write.send(admitted)
        except StopIteration as stop:
            return stop.value, self._registry.store.version != before
        finally:
            write.close()

    async def _admit(self, review: Review) -> Manifest | None:
        hooks = webhooks(self._registry, review)
        if review.phase is Phase.MUTATING:
            return await self._run_mutating(hooks, review)
        if self._registry.has_policies(Phase.VALIDATING):
            await self._conversions.ready(lambda: self._enforce_policies(review))
        matching = [await self._conversions.ready(partial(self._matching, hook, review)) for hook in hooks]
        calls = [call for call in matching if call is not None]
        errors = await asyncio.gather(*(self._call_validating(call, review) for call in calls))
        # That of the first webhook in order; of a real API server, that of the first that answers.
        for error in filter(None, errors):
            raise error
        return review.object

    def _enforce_policies(self, review: Review) -> None:
        if self._policies is None:
            # Imported here, because most clusters have no policies and need not load the evaluation of expressions.
            from ocf_server.admission.policies import PolicyEngine

            self._policies = PolicyEngine(self._registry)
        self._policies.enforce(review)

    def _matching(self, webhook: Mapping[str, Any], review: Review) -> WebhookCall | None:
        """Return the call of a webhook; None if it does not match the write."""
        call = matching_call(self._registry, webhook, review)
        conditions = webhook.get("matchConditions")
        if call is None or not conditions:
            return call
        from ocf_server.admission.conditions import ConditionError, conditions_match

        values = reviews.expression_values(self._registry, call.resource, review)
        try:
            return call if conditions_match(conditions, values) else None
        except ConditionError as error:
            if call.ignores_failure:
                return None
            raise forbidden(review.resource.group_resource, review.name, str(error)) from None

    async def _call_validating(self, call: WebhookCall, review: Review) -> ApiError | None:
        try:
            await self._call(call, review)
        except ApiError as error:
            return error
        return None

    async def _run_mutating(self, hooks: list[Mapping[str, Any]], review: Review) -> Manifest | None:
        """Run the mutating policies and webhooks; repeat those that ask for it if a later one ran."""
        again: list[WebhookCall] = []
        done: list[WebhookCall] = []
        review, repeated, ran = await self._run_policies(review, None)
        before = review.object
        for hook in hooks:
            call = await self._conversions.ready(partial(self._matching, hook, review))
            if call is None:
                continue
            changed = await self._call_mutating(call, review)
            if changed is not review.object:
                review = replace(review, object=changed)
                # The webhooks that were called before have not seen this change.
                again = [earlier for earlier in done if earlier.is_reinvoked]
            done.append(call)
        # Policies run again even if only a webhook after them has changed the object; webhooks only for a difference.
        if repeated and (ran or review.object is not before):
            before = review.object
            review, _, _ = await self._run_policies(review, repeated)
            if not equal_json(review.object, before):
                again = [earlier for earlier in done if earlier.is_reinvoked]
        for earlier in again:
            call = await self._conversions.ready(partial(self._matching, earlier.webhook, review))
            if call is not None:
                review = replace(review, object=await self._call_mutating(call, review))
        return review.object

    async def _run_policies(self, review: Review, only: set[Any] | None) -> tuple[Review, set[Any], bool]:
        """Run the mutating policies.

        Args:
            only: Keys of the invocations that are repeated; None for the first pass.

        Returns:
            The write with the mutated object, the keys of the invocations to repeat if needed, and whether any mutation
            was applied.

        Raises:
            ApiError: If a policy cannot be evaluated and its failure policy is `Fail`.
        """
        if not self._registry.has_policies(Phase.MUTATING):
            return review, set(), False
        from ocf_server.admission import mutations

        engine = self._mutations = self._mutations or mutations.MutationEngine(self._registry)
        found = await self._conversions.ready(partial(engine.invocations, review))
        problems: list[tuple[Invocation | Misconfiguration, str]] = [
            (each, each.text) for each in found if isinstance(each, mutations.Misconfiguration)
        ]
        repeated, ran = set[Any](), False
        for each in found:
            if isinstance(each, mutations.Misconfiguration) or (only is not None and each.key not in only):
                continue
            outcome = await self._mutated(engine, each, review)
            review = replace(review, object=outcome.object)
            problems += [(each, text) for text in outcome.problems]
            ran = ran or outcome.ran
            if outcome.matched and each.is_reinvoked:
                repeated.add(each.key)
        # Only now: a problem of one policy does not keep the others from running.
        if fatal := [(of, text) for of, text in problems if mutations.fails_closed(of.policy)]:
            raise mutations.denied(review, fatal)
        return review, repeated, ran

    async def _mutated(self, engine: "MutationEngine", invocation: "Invocation", review: Review) -> "MutationOutcome":
        try:
            return await self._conversions.ready(partial(engine.run, invocation, review))
        except ValueError as error:
            causes = [StatusCause("", str(error))]
            message = f"Internal error occurred: {error}"
            raise api_error(message, code=500, reason="InternalError", causes=causes) from error

    async def _call_mutating(self, call: WebhookCall, review: Review) -> Manifest | None:
        """Call one mutating webhook; return the object with its patch, or the same object if it has no patch."""
        response = await self._call(call, review)
        if response is None or review.object is None:
            return review.object
        try:
            return await self._conversions.ready(partial(self._apply_patch, call, review, review.object, response))
        except ValueError as error:
            raise api_error(f"Internal error occurred: {error}", code=500, reason="InternalError") from error

    def _apply_patch(
        self, call: WebhookCall, review: Review, manifest: Manifest, response: Mapping[str, Any]
    ) -> Manifest:
        if reviews.is_part(review):
            return reviews.patched_object(manifest, response)
        convert = self._registry.convert
        # The patch is for the version that the webhook got.
        seen = convert(manifest, review.resource, call.resource)
        wanted = reviews.patched_object(seen, response)
        if wanted is seen:
            return manifest
        return decode(
            convert(reviews.require_kind(wanted, call.resource), call.resource, review.resource), review.resource
        )

    async def _call(self, call: WebhookCall, review: Review) -> Mapping[str, Any] | None:
        """Call a webhook and return its response; None if the call failed and its failure policy is `Ignore`."""
        if review.options.dry_run and (error := reviews.dry_run_error(call)):
            raise error
        uid = self._registry.new_uid()
        try:
            sent = await self._conversions.ready(lambda: reviews.admission_review(self._registry, call, review, uid))
            # A copy, because a webhook in this process may change what it gets.
            body = await self._client.ask(call.webhook, copy_json(sent), seconds=call.seconds)
            response, problem = reviews.read_response(body, uid, mutates=review.phase is Phase.MUTATING)
        except UnansweredError as unanswered:
            response, problem = {}, str(unanswered)
        if problem:
            if call.ignores_failure:
                return None
            raise reviews.call_error(call, problem)
        for text in reviews.warnings_of(response):
            review.options.warn(text)
        denial = reviews.denial(call, response)
        if denial is not None:
            raise denial
        return response
