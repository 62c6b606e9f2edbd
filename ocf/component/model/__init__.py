"""Parts of a component as it was built: registered resources, options, ownership, data flow, context."""

__all__: list[str] = []
