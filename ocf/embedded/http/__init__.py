"""The embedded cluster over HTTP: `kubectl`, kopf and any client of Kubernetes can use it.

`serving` starts it, on loopback only. The layers: paths, options, bodies, negotiation, statuses, tables, discovery and
OpenAPI are pure; handlers turn a request into one call of a `Cluster`; the application and the server do the I/O.
"""

from ocf.embedded.http.preload import load_manifests
from ocf.embedded.http.server import Control, HttpServer, serving, write_kubeconfig

__all__ = ["Control", "HttpServer", "load_manifests", "serving", "write_kubeconfig"]
