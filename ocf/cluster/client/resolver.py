"""Resolution of names in threads of its own.

asyncio resolves names in the threads that it also gives to `asyncio.to_thread`: five on a machine with one processor.
Functions of an operator that block there, on another service that hangs, would keep the client from every new
connection to an API server that is named by its address in DNS.
"""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from aiohttp.abc import AbstractResolver, ResolveResult

__all__ = ["Resolver"]

_THREADS: Final = 2  # for the API server and its proxy; requests that need the same name share a lookup
_NUMERIC: Final = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV


class Resolver(AbstractResolver):
    """Resolves names as the operating system is configured, whichever packages for DNS are installed."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="ocf-dns")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a name, in the order of the operating system.

        Args:
            host: The name.
            port: The port, for the result.
            family: The kind of addresses.

        Raises:
            OSError: If the name has no address, or cannot be resolved.
        """
        return await asyncio.get_running_loop().run_in_executor(self._threads, _resolve, host, port, family)

    async def close(self) -> None:
        """End the threads; a lookup that hangs does not delay it."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _resolve(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return [
        ResolveResult(
            hostname=host,
            # With the scope of a link-local address.
            host=socket.getnameinfo(address, _NUMERIC)[0],
            port=port,
            family=kind,
            proto=proto,
            flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
        )
        for kind, _, proto, _, address in found
    ]
