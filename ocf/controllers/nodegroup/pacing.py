"""`PacedProvider`: a provider that is not called while it asks its callers to wait."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final, TypeVar

from ocf.concepts import Clock
from ocf.errors import ProviderUnavailableError
from ocf.nodegroups import InstanceType, Machine, MachineRequest, Provider

__all__ = ["PacedProvider"]

_Answer = TypeVar("_Answer")
# As elsewhere for systems outside of the cluster: an answer of days would stop the controller for as long.
_LONGEST: Final = timedelta(hours=1)


class PacedProvider:
    """A `Provider` whose `Retry-After`, in the answer of any call, holds for all calls.

    Limits of clouds are those of an account: each call of another node would extend the wait.
    """

    def __init__(self, provider: Provider, clock: Clock) -> None:
        self._provider = provider
        self._clock = clock
        self._until: timedelta | None = None
        self._cause = ""

    @property
    def keeps_names(self) -> bool:
        """As the provider."""
        return self._provider.keeps_names

    async def instance_types(self) -> Sequence[InstanceType]:
        """Return all instance types; as `Provider`."""
        return await self._call(self._provider.instance_types)

    async def create(self, request: MachineRequest) -> Machine:
        """Create a machine; as `Provider`."""
        return await self._call(lambda: self._provider.create(request))

    async def get(self, request: MachineRequest) -> Machine:
        """Return the machine of a request; as `Provider`."""
        return await self._call(lambda: self._provider.get(request))

    async def list(self) -> Sequence[Machine]:
        """Return all machines; as `Provider`."""
        return await self._call(self._provider.list)

    async def delete(self, machine: Machine) -> None:
        """Delete a machine; as `Provider`."""
        await self._call(lambda: self._provider.delete(machine))

    async def _call(self, send: Callable[[], Awaitable[_Answer]]) -> _Answer:
        now = self._clock.elapsed()
        left = timedelta(0) if self._until is None else self._until - now
        if left > timedelta(0):
            raise ProviderUnavailableError(self._cause, retry_after=left.total_seconds(), had_no_effect=True)
        try:
            return await send()
        except ProviderUnavailableError as error:
            # The controller also delays its next reconcile by this time, so it is bounded in the error itself.
            error.retry_after = _bounded(error.retry_after)
            if error.retry_after:
                self._until = now + timedelta(seconds=error.retry_after)
                self._cause = str(error)
            raise


def _bounded(seconds: float | None) -> float | None:
    """Return a wait that can be kept: an hour at most, and 0 for what is no time to come, such as NaN."""
    if seconds is None:
        return None
    return min(seconds, _LONGEST.total_seconds()) if seconds > 0 else 0.0
