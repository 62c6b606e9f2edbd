"""The state of an informer, as a value."""

from dataclasses import dataclass

__all__ = ["InformerState"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InformerState:
    """The state of an informer.

    Args:
        api_version: Group and version.
        namespace: Namespace; empty for all namespaces.
        synced: Whether reads are answered from the cache.
        objects: The number of cached objects.
        resource_version: The version that the watch has reached; empty before the first list.
        failures: The number of failed attempts in a row.
        problem: A message about the present error; empty if there is no error.
        missing: Whether the error is that the API server does not serve the kind; it is looked for from time to time.
        unwatched: The error because of which no change is noticed, although the API server serves the kind: the objects
            cannot be listed, or not be watched at all. It is named by its code and reason only, which do not change
            from one attempt to the next; empty if changes are noticed.
        single_problem: A message about the present error of an object that is watched alone, by its name; empty if
            there is none. It concerns the owners that read this object, and no others.
    """

    api_version: str
    kind: str
    namespace: str
    synced: bool
    objects: int
    resource_version: str
    failures: int
    problem: str
    missing: bool = False
    unwatched: str = ""
    single_problem: str = ""
