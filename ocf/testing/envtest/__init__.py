"""A real control plane for tests: etcd, the API server, kubectl, and controllers on request.

`python -m ocf.testing.envtest` provides the programs, and so does `make envtest` in a checkout. With pytest, use the
fixtures of `ocf.testing.plugin`; without it, `ControlPlane`. Importing this loads neither pytest nor anything else
that is only needed once a control plane starts.
"""

from ocf.testing.envtest.binaries import Program, Programs, find_programs
from ocf.testing.envtest.controllers import ControllerName
from ocf.testing.envtest.controlplane import ControlPlane

__all__ = ["ControlPlane", "ControllerName", "Program", "Programs", "find_programs"]
