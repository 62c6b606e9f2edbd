"""Client of an API server, as a `Cluster`.

It follows client-go where it connects: kubeconfigs, credentials, impersonation and proxies mean what they mean to
`kubectl`.
"""

from ocf.cluster.client.cluster import ApiServerCluster
from ocf.cluster.client.rest_config import Impersonation, RestConfig, TlsConfig

__all__ = [
    "ApiServerCluster",
    "Impersonation",
    "RestConfig",
    "TlsConfig",
]
