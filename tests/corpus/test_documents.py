from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calm.corpus import documents
from calm.corpus.documents import Document, Lines, blocks
from calm.errors import CalmError


def read(data, size=7, **options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "BLOCK_BYTES", size)
        document = Document("a", "a.txt", BytesIO(data), **options)
        return list(blocks(document)), document


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=60),
    st.integers(1, 20),
)
def test_blocks_are_whole_lines_and_together_the_text(text, size):
    found, _ = read(text.encode(), size)
    text = text.removeprefix("\ufeff")
    ended = text if text.endswith("\n") or not text else text + "\n"
    assert b"".join(found).decode() == ended
    assert all(block.endswith(b"\n") for block in found)


def test_a_byte_order_mark_and_carriage_returns_are_taken_away():
    found, _ = read(b"\xef\xbb\xbfx\r\ny\rz\r\n")
    assert b"".join(found) == b"x\ny\rz\n"


@pytest.mark.parametrize("prefix", [b"", b"\xef\xbb\xbf", b"line\r\n" * 5, "čč\n".encode() * 9])
@pytest.mark.parametrize("fault", [b"\xff", b"\0", b"\xc4"])
def test_a_fault_names_file_and_byte(prefix, fault):
    with pytest.raises(CalmError) as error:
        read(prefix + b"ab" + fault + b"\nmore\n")
    place = f"a.txt is not UTF-8 text: byte {len(prefix) + 2} is 0x{fault[0]:02x}"
    assert str(error.value).startswith(place)


def test_lines_that_are_no_text_are_left_out_if_that_is_wanted():
    found, document = read(b"good\nb\xffd\nn\0l\nfine\n", strict=False)
    assert b"".join(found) == b"good\nfine\n"
    assert document.left_out == 2


def test_a_line_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(documents, "LONGEST_LINE", 20)
    with pytest.raises(CalmError, match="has a line of over 0 MB at byte 3"):
        read(b"ab\n" + b"x" * 50)


def test_lines_are_a_stream():
    stream = Lines(iter(["one", "two", "č"]))
    assert stream.read(5) == b"one\ntwo\n"
    assert stream.read(5) == "č\n".encode()
    assert stream.read(5) == b""
