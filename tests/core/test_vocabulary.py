"""The bundled vocabulary is tiktoken's own, byte for byte, and counts the same."""

from __future__ import annotations

import gzip
import hashlib
from importlib.resources import files
from pathlib import Path

import pytest
import tiktoken
import tiktoken_ext.openai_public
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import InvalidRequest, TiktokenCounter
from coatcheck.core.vocabulary import BUNDLED_SHA256, check_available, load_vocabulary

RANKS_URL = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tiktoken.Encoding:
    """Return tiktoken's own o200k_base, built by tiktoken's own code from a cache with the bundled ranks.

    tiktoken checks the ranks against a checksum in its source, so this fails if they are not the published ones.
    """
    cache = tmp_path_factory.mktemp("tiktoken-cache")
    name = hashlib.sha1(RANKS_URL.encode(), usedforsecurity=False).hexdigest()
    packed = files("coatcheck.core.vocabulary").joinpath("o200k_base.tiktoken.gz").read_bytes()
    Path(cache, name).write_bytes(gzip.decompress(packed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(cache))
        patch.setattr("requests.get", _refuse)
        return tiktoken.Encoding(**tiktoken_ext.openai_public.o200k_base())


def _refuse(*_: object, **__: object) -> None:
    pytest.fail("the network was asked")


def test_the_ranks_have_the_checksum_that_tiktoken_demands() -> None:
    packed = files("coatcheck.core.vocabulary").joinpath("o200k_base.tiktoken.gz").read_bytes()

    assert hashlib.sha256(gzip.decompress(packed)).hexdigest() == BUNDLED_SHA256


def test_the_licence_note_is_next_to_the_ranks() -> None:
    note = files("coatcheck.core.vocabulary").joinpath("LICENSE-o200k_base").read_text()

    assert "MIT License" in note
    assert BUNDLED_SHA256 in note


@given(text=st.text(max_size=400))
def test_counts_equal_tiktokens_own(published: tiktoken.Encoding, text: str) -> None:
    assert TiktokenCounter().count(text) == len(published.encode_ordinary(text))


@pytest.mark.parametrize("path", ["errors.py", "tokens.py", "notice.py"])
def test_counts_of_source_code_equal_tiktokens_own(published: tiktoken.Encoding, path: str) -> None:
    text = files("coatcheck.core").joinpath(path).read_text(encoding="utf-8")[:16_384]

    assert TiktokenCounter().count(text) == len(published.encode_ordinary(text))


def test_split_pattern_and_special_tokens_are_tiktokens_own(published: tiktoken.Encoding) -> None:
    bundled = load_vocabulary("o200k_base").encoding

    assert bundled._pat_str == published._pat_str
    assert bundled._special_tokens == published._special_tokens


def test_the_ranks_are_not_also_kept_in_python() -> None:
    TiktokenCounter().count("any")

    assert not load_vocabulary("o200k_base").encoding._mergeable_ranks


def test_the_longest_token_is_known() -> None:
    assert load_vocabulary("o200k_base").longest_token == 128


def test_a_damaged_file_in_the_cache_is_not_replaced_over_the_network(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("requests.get", _refuse)
    url = "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken"
    (tmp_path / hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()).write_bytes(b"damaged")

    with pytest.raises(InvalidRequest, match="cl100k_base"):
        check_available("cl100k_base")


@pytest.mark.skipif(
    "o200k_harmony" not in tiktoken.list_encoding_names(),
    reason="this tiktoken knows no second encoding with the ranks that are at hand",
)
def test_an_encoding_in_tiktokens_cache_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    packed = files("coatcheck.core.vocabulary").joinpath("o200k_base.tiktoken.gz").read_bytes()
    (tmp_path / hashlib.sha1(RANKS_URL.encode(), usedforsecurity=False).hexdigest()).write_bytes(
        gzip.decompress(packed)
    )
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("requests.get", _refuse)

    assert TiktokenCounter("o200k_harmony").count("hello world") == TiktokenCounter().count("hello world")


def test_downloading_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no-such-encoding"):
        TiktokenCounter.download("no-such-encoding")
