"""Line splitting of a watch stream: chunks of any size, one JSON object per line.

A chunk may end anywhere in a line. A line may be as long as the largest object (megabytes), so chunks are kept and
joined once, at the end of their line.
"""

from dataclasses import dataclass, field

__all__ = ["LineBuffer"]


@dataclass(slots=True)
class LineBuffer:
    r"""Assembles lines from chunks.

    Example:
        >>> lines = LineBuffer()
        >>> lines.feed(b'{"type":'), lines.unfinished, lines.pending
        ([], True, 8)
        >>> lines.feed(b'"ADDED"}\n\n'), lines.unfinished
        ([b'{"type":"ADDED"}'], False)
    """

    pending: int = field(default=0, init=False)
    """The number of bytes of the incomplete line."""
    _chunks: list[bytes] = field(default_factory=list, init=False, repr=False)

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add a chunk and return the lines that it completes.

        Args:
            chunk: The next bytes of the stream.

        Returns:
            Complete lines without their line ends, except blank lines.
        """
        first, *others = chunk.split(b"\n")
        self._chunks.append(first)
        if not others:
            self.pending += len(first)
            return []
        lines = [b"".join(self._chunks), *others[:-1]]
        self._chunks = others[-1:]
        self.pending = len(others[-1])
        return [line for line in lines if line.strip()]

    @property
    def unfinished(self) -> bool:
        """Whether the last line is incomplete."""
        return any(chunk.strip() for chunk in self._chunks)
