"""A watch as it arrives: bytes in pieces of any size, one JSON object per line.

The pieces have nothing to do with the lines. A line may be as long as an object may be (megabytes), so pieces are
kept as they come and joined once, when their line ends.
"""

from dataclasses import dataclass, field

__all__ = ["Lines"]


@dataclass(slots=True)
class Lines:
    r"""Puts lines together from pieces.

    Example:
        >>> lines = Lines()
        >>> lines.feed(b'{"type":'), lines.unfinished
        ([], True)
        >>> lines.feed(b'"ADDED"}\n\n'), lines.unfinished
        ([b'{"type":"ADDED"}'], False)
    """

    _pieces: list[bytes] = field(default_factory=list, init=False, repr=False)

    def feed(self, piece: bytes) -> list[bytes]:
        """Take a piece and return the lines it completes.

        Args:
            piece: The next bytes.

        Returns:
            Complete lines without their ends; blank ones are left out.
        """
        first, *others = piece.split(b"\n")
        self._pieces.append(first)
        if not others:
            return []
        lines = [b"".join(self._pieces), *others[:-1]]
        self._pieces = others[-1:]
        return [line for line in lines if line.strip()]

    @property
    def unfinished(self) -> bool:
        """Whether a line has begun and not ended."""
        return any(piece.strip() for piece in self._pieces)
