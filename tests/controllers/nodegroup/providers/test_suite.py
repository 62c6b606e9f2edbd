"""Every provider passes the suite for providers."""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest

from ocf.controllers.nodegroup.providers.kwok import KwokProvider
from ocf.controllers.nodegroup.providers.simulated import SimulatedProvider
from ocf.controllers.nodegroup.providers.vpsie import Credentials, VPSieConnection, VPSieProvider, VPSieSettings
from ocf.nodegroups import InstanceType, MachineRequest, Offering
from ocf.objects import Quantity
from ocf.testing import VirtualClock
from ocf.testing.provider_suite import NamedProviderSuite, ProviderSuite
from ocf_server import EmbeddedCluster
from tests.controllers.nodegroup.providers.vpsie.stub import CLUSTER, DATACENTER, VPSieStub, serving

SMALL = InstanceType(
    "small",
    {"cpu": Quantity.parse(2), "memory": Quantity.parse("4Gi"), "pods": Quantity.parse(110)},
    offerings=(Offering("fra", 0.02), Offering("ams", 0.03)),
)


def small(name: str) -> MachineRequest:
    return MachineRequest(name, "pool", "small", "fra", labels={"pool": "a"})


class TestSimulatedProvider(NamedProviderSuite):
    @pytest.fixture(params=[0, 30], ids=["deleted at once", "deleted later"])
    def provider(self, request: pytest.FixtureRequest) -> SimulatedProvider:
        return SimulatedProvider([SMALL], VirtualClock(), deletion_time=timedelta(seconds=request.param))

    @pytest.fixture
    def request_of(self) -> Callable[[str], MachineRequest]:
        return small


class TestKwokProvider(NamedProviderSuite):
    @pytest.fixture
    def provider(self) -> KwokProvider:
        return KwokProvider(EmbeddedCluster(), [SMALL])

    @pytest.fixture
    def request_of(self) -> Callable[[str], MachineRequest]:
        return small


class TestVPSieProvider(ProviderSuite):
    @pytest.fixture
    async def provider(self) -> AsyncIterator[VPSieProvider]:
        async def credentials() -> Credentials:
            return Credentials(token="fixed")

        async with serving(VPSieStub()) as url:
            connection = VPSieConnection(VPSieSettings(CLUSTER, (DATACENTER,), base_url=url), credentials)
            yield VPSieProvider(connection)
            await connection.close()

    @pytest.fixture
    def request_of(self) -> Callable[[str], MachineRequest]:
        return lambda name: MachineRequest(name, "pool", "12", DATACENTER)
