"""Controllers that run: what the pure rooms decide, carried out on a cluster."""

__all__: list[str] = []
