"""`ProviderSuite` and `NamedProviderSuite`: the tests that every provider of machines has to pass.

A subclass in a test module gives the fixtures; pytest then collects the tests with it. This module needs pytest and
pytest-asyncio in its `auto` mode.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from ocf.errors import CapacityExhaustedError, MachineNotFoundError, ProviderRefusedError
from ocf.nodegroups import Machine, MachineRequest, MachineState, Provider

__all__ = ["NamedProviderSuite", "ProviderSuite"]


class ProviderSuite:
    """Tests of the contract of `ocf.nodegroups.Provider`.

    A subclass defines two fixtures: `provider`, a provider without machines, and `request_of`, a function that takes a
    name and returns a `MachineRequest` that the provider can fulfil. A provider that keeps names, see
    `Provider.keeps_names`, uses `NamedProviderSuite` instead.

    Example:
        >>> from ocf.controllers.nodegroup.providers.simulated import SimulatedProvider
        >>> class TestSimulatedProvider(NamedProviderSuite):
        ...     @pytest.fixture
        ...     def provider(self, clock) -> SimulatedProvider:
        ...         return SimulatedProvider(TYPES, clock)
        ...
        ...     @pytest.fixture
        ...     def request_of(self) -> Callable[[str], MachineRequest]:
        ...         return lambda name: MachineRequest(name, "pool", "small")
    """

    async def test_every_instance_type_has_a_name_resources_and_a_price(self, provider: Provider) -> None:
        types = await provider.instance_types()
        assert types
        assert len({each.name for each in types}) == len(types)
        for each in types:
            assert {"cpu", "memory", "pods"} <= each.capacity.keys()
            assert all(each.allocatable[name] <= amount for name, amount in each.capacity.items())
            assert each.offerings
            assert all(offering.price >= 0 for offering in each.offerings)

    async def test_a_created_machine_is_found_and_listed(
        self, provider: Provider, request_of: Callable[[str], MachineRequest]
    ) -> None:
        request = request_of("pool-1")
        created = await provider.create(request)
        assert created.state in {MachineState.PENDING, MachineState.RUNNING}
        found = await self.found(provider, request, created)
        assert not provider.keeps_names or found.name == request.name
        assert (found.instance_type, found.zone) == (created.instance_type, created.zone)
        assert found.id in {each.id for each in await provider.list()}

    async def test_a_repeated_request_creates_no_second_machine(
        self, provider: Provider, request_of: Callable[[str], MachineRequest]
    ) -> None:
        before = {each.id for each in await provider.list()}
        request = replace(request_of("pool-1"), excluded=frozenset(before))
        await provider.create(request)
        repeated = [await provider.create(replace(request, retried=True)) for _ in range(3)]
        assert len({each.id for each in repeated}) == 1
        assert len(await provider.list()) == len(before) + 1

    async def test_two_requests_are_two_machines(
        self, provider: Provider, request_of: Callable[[str], MachineRequest]
    ) -> None:
        first = await self.created(provider, request_of("pool-1"))
        second = await self.created(provider, replace(request_of("pool-2"), excluded=frozenset({first.id})))
        assert first.id != second.id
        assert {first.id, second.id} <= {each.id for each in await provider.list()}

    async def test_exactly_the_deleted_machine_is_deleted(
        self, provider: Provider, request_of: Callable[[str], MachineRequest]
    ) -> None:
        first = await self.created(provider, request_of("pool-1"))
        second = await self.created(provider, replace(request_of("pool-2"), excluded=frozenset({first.id})))
        await provider.delete(first)
        left = {each.id for each in await provider.list() if each.state is not MachineState.DELETING}
        assert first.id not in left
        assert second.id in left

    async def test_an_id_belongs_to_one_machine(
        self, provider: Provider, request_of: Callable[[str], MachineRequest]
    ) -> None:
        first = await self.created(provider, request_of("pool-1"))
        second = await self.created(provider, replace(request_of("pool-2"), excluded=frozenset({first.id})))
        await provider.delete(first)
        excluded = frozenset({first.id, second.id})
        third = await self.created(provider, replace(request_of("pool-3"), excluded=excluded))
        assert third.id not in excluded

    async def test_a_machine_may_be_deleted_again(
        self, provider: Provider, request_of: Callable[[str], MachineRequest]
    ) -> None:
        machine = await self.created(provider, request_of("pool-1"))
        for _ in range(2):
            await provider.delete(machine)

    async def test_a_machine_that_was_never_created_is_not_found(
        self, provider: Provider, request_of: Callable[[str], MachineRequest]
    ) -> None:
        excluded = frozenset(each.id for each in await provider.list())
        with pytest.raises(MachineNotFoundError):
            await provider.get(replace(request_of("missing"), excluded=excluded))

    async def test_an_unknown_instance_type_is_refused(
        self, provider: Provider, request_of: Callable[[str], MachineRequest]
    ) -> None:
        with pytest.raises((ProviderRefusedError, CapacityExhaustedError)):
            await provider.create(replace(request_of("pool-1"), instance_type="no-such-type"))
        assert not [each for each in await provider.list() if each.name == "pool-1"]

    async def created(self, provider: Provider, request: MachineRequest) -> Machine:
        """Create a machine, and return it with its id."""
        return await self.found(provider, request, await provider.create(request))

    async def found(self, provider: Provider, request: MachineRequest, created: Machine) -> Machine:
        """Return a machine as `get` does, after it was created."""
        return await provider.get(replace(request, machine_id=created.id))


class NamedProviderSuite(ProviderSuite):
    """Tests of providers that keep names, so that concurrent requests are safe, too."""

    def test_it_keeps_names(self, provider: Provider) -> None:
        assert provider.keeps_names

    async def test_concurrent_requests_of_one_name_are_one_machine(
        self, provider: Provider, request_of: Callable[[str], MachineRequest]
    ) -> None:
        request = request_of("pool-1")
        await asyncio.gather(*(provider.create(request) for _ in range(5)))
        assert [each.name for each in await provider.list()] == [request.name]
