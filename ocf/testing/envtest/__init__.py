"""Real control plane for tests: etcd, the API server, kubectl, and controllers on request.

`python -m ocf.testing.envtest` installs the programs; in a checkout `make envtest` does the same. With pytest, use the
fixtures of `ocf.testing.plugin`; without it, `ControlPlane`. Importing this package does not load pytest, nor anything
else that only a running control plane needs.
"""

from ocf.testing.envtest.controllers import ControllerName
from ocf.testing.envtest.controlplane import ControlPlane

__all__ = [
    "ControlPlane",
    "ControllerName",
]
