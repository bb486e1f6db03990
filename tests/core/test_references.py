"""References and keys: the same content, call and scope give the same ones. Those of other scopes reveal nothing."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import InvalidRequest, ReferenceNotFound
from coatcheck.core.references import Key, content_digest, find_references, make_reference, resolve_reference
from tests.core.strategies import texts

SCOPES = texts(pieces=6)
HOSTILE_NAMES = ["../../x", "a" * 1_400, "", "\0", "ключ", "A-b.C", "con", "x\ny", "\ud800", " "]


@given(tool_name=texts(pieces=6), scope=SCOPES, data=st.binary(max_size=50))
def test_a_reference_resolves_to_its_key_in_its_scope(tool_name: str, scope: str, data: bytes) -> None:
    digest = content_digest("text/plain", data)

    assert resolve_reference(make_reference(tool_name, scope, digest=digest), scope) == Key.of(scope, digest)


@given(scope=SCOPES, other=SCOPES, data=st.binary(max_size=50))
def test_a_reference_of_another_scope_is_unknown(scope: str, other: str, data: bytes) -> None:
    digest = content_digest("text/plain", data)
    reference = make_reference("search", scope, digest=digest)
    unknown = make_reference("search", "a scope that nobody has", digest=digest)
    if reference in (make_reference("search", other, digest=digest), unknown):
        return  # one pair of scopes in 65,536 has the same check; such a reference counts as expired

    with pytest.raises(ReferenceNotFound) as foreign:
        resolve_reference(reference, other)
    with pytest.raises(ReferenceNotFound) as invented:
        resolve_reference(unknown, scope)

    assert type(foreign.value) is type(invented.value) is ReferenceNotFound
    assert str(foreign.value).replace(reference, "R") == str(invented.value).replace(unknown, "R")


@pytest.mark.parametrize("tool_name", HOSTILE_NAMES)
def test_no_tool_name_reaches_a_key_or_breaks_a_reference(tool_name: str) -> None:
    digest = content_digest("text/plain", b"x")
    reference = make_reference(tool_name, "s", digest=digest)

    assert reference.isascii()
    assert len(reference) <= 54
    assert set(reference) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")
    assert resolve_reference(reference, "s") == Key.of("s", digest)


@pytest.mark.parametrize("scope", HOSTILE_NAMES)
def test_no_scope_reaches_a_key(scope: str) -> None:
    key = str(Key.of(scope, content_digest("text/plain", b"x")))

    assert set(key) <= set("0123456789abcdef/")
    assert len(key) == 33


@pytest.mark.parametrize(
    "written", ["{}", "`{}`", '"{}"', "({})", " {} \n", "[{}]", "ref: {}", "<{}>", "{}.", "ref={}", "'{}',"]
)
def test_text_that_models_put_around_a_reference_does_not_matter(written: str) -> None:
    digest = content_digest("text/plain", b"x")
    reference = make_reference("search", "s", digest=digest)

    assert resolve_reference(written.format(reference), "s") == Key.of("s", digest)
    assert resolve_reference(written.format(reference.upper()), "s") == Key.of("s", digest)


def test_the_slug_of_a_reference_does_not_matter() -> None:
    digest = content_digest("text/plain", b"x")
    reference = make_reference("search", "s", digest=digest)

    assert resolve_reference(reference.replace("search", "other-Tool"), "s") == Key.of("s", digest)
    assert resolve_reference(reference.removeprefix("search-"), "s") == Key.of("s", digest)


@pytest.mark.parametrize("reference", [None, 7, "", "   ", b"x", ["a"], "x" * 257])
def test_a_value_that_cannot_be_a_reference_is_refused_with_where_to_find_one(reference: object) -> None:
    with pytest.raises(InvalidRequest, match=r"^reference .*: copy it from the placeholder, .* \[Stored ref"):
        resolve_reference(reference, "s")


@given(reference=st.text(min_size=1, max_size=256).filter(str.strip))
def test_an_invented_reference_is_unknown(reference: str) -> None:
    with pytest.raises(ReferenceNotFound):
        resolve_reference(reference, "s")


REFERENCE = make_reference("read_log", "s", digest=content_digest("text/plain", b"1"))


@pytest.mark.parametrize(
    "given",
    [
        REFERENCE[:-5],
        REFERENCE[:-1],
        REFERENCE[:-8],
        f"{REFERENCE}0",
        REFERENCE.replace("-", "_"),
        f"{REFERENCE} {make_reference('read_log', 's', digest=content_digest('text/plain', b'2'))}",
    ],
    ids=["no check", "cut", "cut in the digest", "too long", "other signs", "two"],
)
def test_anything_but_one_whole_reference_is_refused_with_advice(given: str) -> None:
    with pytest.raises(ReferenceNotFound, match="not one whole reference: copy one from a placeholder") as refused:
        resolve_reference(given, "s")
    assert str(refused.value).startswith(f"reference not found: {given[:30]}")


def test_text_that_never_was_a_reference_is_refused_in_strands_words() -> None:
    with pytest.raises(ReferenceNotFound, match=r"^reference not found: mem_1_tool_0$"):
        resolve_reference("mem_1_tool_0", "s")


def test_every_reference_in_text_is_found() -> None:
    made = [make_reference("tool", "s", digest=content_digest("text/plain", bytes([value]))) for value in range(5)]
    text = f"{made[0]}, see {made[1]}; [{made[2]}]\n  {made[3]} (text/plain, 3 bytes)\n| ref: {made[4]}]"

    assert [match.group() for match in find_references(text)] == made


def test_text_without_references_is_searched_in_a_fraction_of_the_time() -> None:
    def took(text: str) -> float:
        started = time.process_time()
        assert len(list(find_references(text))) == text.count(made)
        return time.process_time() - started

    made = make_reference("tool", "s", digest=content_digest("text/plain", b"1"))
    rows = "".join(f'{{"id": {number}, "name": "row-{number}"}}\n' for number in range(50_000))

    assert min(took(rows) for _ in range(3)) * 5 < took(f"{rows} {made}")


def test_content_type_is_part_of_the_digest() -> None:
    assert content_digest("text/plain", b"{}") != content_digest("application/json", b"{}")
