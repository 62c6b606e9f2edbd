"""Types of the API machinery that all packages of the embedded server use: write options and Status errors."""

__all__: list[str] = []
