"""A cluster behind a real API server.

Speaks to it through the connections of the official asyncio client. Importing this room imports that client; importing
`ocf.cluster` does not.
"""

from ocf.cluster.client.cluster import ApiServerCluster

__all__ = ["ApiServerCluster"]
