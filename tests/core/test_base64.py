"""Base64 as adapters read it: however it is wrapped, decoding returns the bytes that were encoded."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.adapting import decode_base64, decode_data_url, encode_base64

if TYPE_CHECKING:
    from collections.abc import Callable

FORMS: dict[str, Callable[[bytes], bytes]] = {
    "MIME, 76 characters a line": base64.encodebytes,
    "URL-safe": base64.urlsafe_b64encode,
    "ends of lines as in mails": lambda data: base64.encodebytes(data).replace(b"\n", b"\r\n"),
    "one line": base64.b64encode,
}


@pytest.mark.parametrize("encode", FORMS.values(), ids=FORMS.keys())
@given(data=st.binary(min_size=1))
def test_every_form_decodes_to_the_original_bytes(encode: Callable[[bytes], bytes], data: bytes) -> None:
    assert decode_base64(encode(data).decode()) == data


@pytest.mark.parametrize("encode", FORMS.values(), ids=FORMS.keys())
def test_a_large_medium_is_read_in_pieces(encode: Callable[[bytes], bytes]) -> None:
    data = bytes(range(256)) * 8_000

    assert decode_base64(encode(data).decode()) == data
    assert decode_base64(encode_base64(data)) == data


@pytest.mark.parametrize("text", ["", "a", "abc", "ab=c", "a b", "no base64!", "\u00e9\u00e9\u00e9\u00e9"])
def test_malformed_base64_gives_no_bytes(text: str) -> None:
    assert decode_base64(text) == b""


@pytest.mark.parametrize(
    "url", ["data:image/png;base64,no base64!", "data:image/png;base64,", "data:image/png,abc", "a"]
)
def test_a_data_url_without_bytes_has_no_type_either(url: str) -> None:
    assert decode_data_url(url) == (b"", "")
    assert decode_data_url("data:text/plain;charset=utf-8;base64,QUJD") == (b"ABC", "text/plain")
