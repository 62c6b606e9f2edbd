"""HTTP server of the embedded cluster, for `kubectl`, kopf and any other Kubernetes client.

`serving` starts it, on loopback only. The modules for paths, options, bodies, content negotiation, statuses, tables,
discovery and OpenAPI do no I/O; handlers turn a request into one call of a `Cluster`; the application and the server
do the I/O.
"""

from ocf_server.http.server import serving, write_kubeconfig

__all__ = [
    "serving",
    "write_kubeconfig",
]
