"""Models of custom resources of other projects, which the Kubernetes client does not have.

Each module is loaded when its kind is first used, because the models contain some of the client.
"""

__all__: list[str] = []
