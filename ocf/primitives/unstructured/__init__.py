"""Objects of any kind, including custom resources: built from a manifest, with fields edited by path.

There is one module per category, with a `Builder` and a `Resource`; the mutator is the same. A static object is ready
as soon as it exists; for the other categories the user provides the status handler, because only the user knows how the
kind reports its status. A kind with a pydantic model is better declared with `ocf.primitives.custom_kind`.
"""

from ocf.primitives.unstructured import integration, static, task, workload
from ocf.primitives.unstructured.model import Mutation, Mutator, Unstructured

__all__ = ["Mutation", "Mutator", "Unstructured", "integration", "static", "task", "workload"]
