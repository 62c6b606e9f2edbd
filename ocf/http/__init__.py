"""HTTP servers that no client can exhaust: a limited number of connections, and of the time they wait for a client."""

__all__: list[str] = []
