"""client-go does the same on the embedded API server, with and without TLS, and on a real one.

The program in `programs/go/clientgo` uses each part of client-go that operators are made of, in one group per part, and
demands the answers of a real API server.
"""

import json
from typing import Final

from tests.clients.support import Server, go_program, run

GROUPS: Final = 40


async def differences(server: Server) -> dict[str, str]:
    results: dict[str, str] = json.loads(await run([go_program("clientgo")], server))
    assert len(results) == GROUPS
    return {group: problem for group, problem in results.items() if problem}


async def test_on_the_embedded_server(embedded: Server) -> None:
    assert await differences(embedded) == {}


async def test_on_a_real_server(real: Server) -> None:
    assert await differences(real) == {}
