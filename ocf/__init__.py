"""`ocf`, an operator component framework for Python.

Describe a feature of your product as a component of gated, mutable resources; `ocf` reconciles it quietly, suspends and
resumes it, and reports one honest condition for it.

Importing this package loads nothing else: each package is imported by its own name (`from ocf import component`,
`from ocf.primitives import hpa`), and the models of the Kubernetes client are loaded when first used.
"""

__all__ = ["__version__"]

__version__ = "0.1.0.dev0"
