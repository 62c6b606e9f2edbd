"""An operator with controller-runtime behaves the same on the embedded server, with and without TLS, and on a real one.

The program in `programs/go/operator` has the operator and the checks, which demand the answers of a real API server.
"""

import json
from typing import Final

from ocf.testing.envtest.controllers import ControllerName
from ocf.testing.envtest.fixtures import RunControllers
from tests.clients.support import Server, go_program, run

CHECKS: Final = 32


async def differences(server: Server) -> dict[str, str]:
    results: dict[str, str] = json.loads(await run([go_program("operator")], server))
    assert len(results) == CHECKS
    return {check: problem for check, problem in results.items() if problem}


async def test_on_the_embedded_server(embedded: Server) -> None:
    assert await differences(embedded) == {}


async def test_on_a_real_server(real: Server, envtest_controllers: RunControllers) -> None:
    with envtest_controllers(ControllerName.GARBAGE_COLLECTOR):
        assert await differences(real) == {}
