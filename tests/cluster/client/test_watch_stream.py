"""Lines are complete for any chunking."""

import json

from hypothesis import given
from hypothesis import strategies as st

from ocf.cluster.client.responses import LineBuffer

_OBJECTS = st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=20), max_size=3), max_size=6)


def _fed(pieces: list[bytes]) -> list[bytes]:
    lines = LineBuffer()
    return [line for piece in pieces for line in lines.feed(piece)]


@given(objects=_OBJECTS, data=st.data())
def test_any_chunking_gives_the_same_lines(objects: list[dict[str, str]], data: st.DataObject) -> None:
    stream = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in objects).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]

    assert [json.loads(line) for line in _fed(pieces)] == objects


def test_byte_by_byte_gives_the_same_lines() -> None:
    stream = b'{"a": "\xc3\xa9"}\n{"b": 2}\n'

    assert _fed([bytes([byte]) for byte in stream]) == [b'{"a": "\xc3\xa9"}', b'{"b": 2}']


def test_a_line_of_many_chunks_is_joined_once() -> None:
    """Megabytes in small chunks become one line, without a copy for each chunk."""
    lines = LineBuffer()
    for _ in range(50_000):
        assert lines.feed(b"x" * 64) == []

    assert lines.feed(b"\n") == [b"x" * 3_200_000]


def test_blank_lines_are_ignored() -> None:
    assert _fed([b"\n", b"  \n\r\n", b"{}\n"]) == [b"{}"]


def test_a_line_is_unfinished_until_its_end_arrives() -> None:
    lines = LineBuffer()
    states = []
    for piece in (b"", b"{", b"}", b"\n", b"{}\n{", b"}\n"):
        lines.feed(piece)
        states.append(lines.unfinished)

    assert states == [False, True, True, False, True, False]
