"""Program under measurement: an embedded API server with many ConfigMaps. The argument is their number."""

import asyncio
import sys

from benchmarks.api_servers import config_map
from benchmarks.autoscaler import NAMESPACE
from ocf_server import EmbeddedCluster
from ocf_server.http import serving


async def main(number: int) -> None:
    """Serve until the process is ended; the URL is written as one line."""
    cluster = EmbeddedCluster(namespaces=(NAMESPACE,), collect=False)
    for at in range(number):
        manifest = config_map(at)
        manifest["metadata"]["namespace"] = NAMESPACE
        await cluster.create(manifest, field_manager="benchmark")
    async with serving(cluster) as server:
        print(server.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
