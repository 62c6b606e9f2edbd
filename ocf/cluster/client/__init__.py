"""Client of an API server, as a `Cluster`.

It uses the connections of the official asyncio client. Importing this package imports that client; importing
`ocf.cluster` does not.
"""

from ocf.cluster.client.cluster import ApiServerCluster

__all__ = ["ApiServerCluster"]
