"""Scale targets: their references, and the resources that their pods request."""

__all__: list[str] = []
