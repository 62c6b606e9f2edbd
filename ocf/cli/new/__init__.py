"""The commands of `ocf new`."""

__all__: list[str] = []
