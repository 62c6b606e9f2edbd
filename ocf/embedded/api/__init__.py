"""Types of the API machinery that every layer of the server uses: write options and Status errors."""

__all__: list[str] = []
