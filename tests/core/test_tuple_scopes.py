"""Scopes that are tuples: no two scopes share a key, and all scopes below the same first parts are deleted together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import Always, InMemoryStorage, InvalidRequest, Offloader, ReferenceNotFound, Scope, TextBlock, scope
from coatcheck.core.references import Key, is_storage_key, make_reference, resolve_reference, scope_part, suggested_name
from coatcheck.scopes import choose_scope
from tests.core.storages import DictStorage, Shelves
from tests.core.strategies import texts

if TYPE_CHECKING:
    from coatcheck import Event

DIGEST = "0123456789abcdef" * 4
PARTS = st.one_of(
    texts(pieces=3).filter(bool), st.sampled_from(["a", "b", "ab", "a/b", "a\xffb", "\xff", "('a', 'b')"])
)
TUPLES = st.lists(PARTS, min_size=1, max_size=8).map(tuple)
SCOPES = st.one_of(PARTS, TUPLES)


@given(one=SCOPES, other=SCOPES)
def test_different_scopes_have_different_keys_and_names(one: Scope, other: Scope) -> None:
    same = one == other

    assert (Key.of(one, DIGEST) == Key.of(other, DIGEST)) is same
    assert (suggested_name("t", one, digest=DIGEST) == suggested_name("t", other, digest=DIGEST)) is same


@pytest.mark.parametrize(
    ("one", "other"),
    [(("a", "b"), ("ab",)), (("a", "b"), "a/b"), (("a",), "a"), (("a", "b"), "('a', 'b')"), (("a", "b"), ("b", "a"))],
)
def test_scopes_that_look_alike_are_different(one: Scope, other: Scope) -> None:
    assert Key.of(one, DIGEST) != Key.of(other, DIGEST)
    assert len({make_reference("t", each, digest=DIGEST) for each in (one, other)}) == 2


@given(above=TUPLES, other=SCOPES)
def test_only_keys_of_scopes_that_begin_with_the_parts_have_their_prefix(above: tuple[str, ...], other: Scope) -> None:
    is_below = isinstance(other, tuple) and other[: len(above)] == above

    assert str(Key.of(other, DIGEST)).startswith(scope_part(above)) is is_below


@given(name=SCOPES, kind=st.sampled_from(["", "lines", "unfinished"]))
def test_a_key_parses_back_to_itself(name: Scope, kind: str) -> None:
    key = Key(scope=scope_part(name), digest=DIGEST[:16], kind=kind)

    assert Key.parse(str(key)) == key
    assert is_storage_key(str(key))
    assert set(str(key)) <= set("0123456789abcdef/-" + kind)


@given(name=SCOPES)
def test_the_length_of_a_scope_part_tells_a_tuple_from_a_str(name: Scope) -> None:
    assert len(scope_part(name)) == 16 * (1 if isinstance(name, str) else len(name) + 1)


@given(name=TUPLES)
def test_a_reference_is_as_short_for_a_tuple_as_for_a_str(name: tuple[str, ...]) -> None:
    reference = make_reference("search", name, digest=DIGEST)

    assert len(reference) == len(make_reference("search", "a str", digest=DIGEST))
    assert resolve_reference(reference, name) == Key.of(name, DIGEST)


def test_a_str_scope_has_the_same_key_as_in_earlier_versions() -> None:
    assert str(Key.of("user-1", DIGEST)) == "c6c289e49e9c05b2/0123456789abcdef"


def test_a_scope_and_each_part_of_one_may_have_4096_characters() -> None:
    longest = "x" * 4_096

    assert choose_scope(longest, None, required=True) == longest
    assert choose_scope((longest, longest), None, required=True) == (longest, longest)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "a tuple of 0 parts"),
        (("a", ""), "''"),
        (("a", 7), "7"),
        (("a", None), "None"),
        (("a", ("b",)), "a tuple of 1 parts"),
        (tuple("abcdefghi"), "a tuple of 9 parts"),
        (("a", "x" * 4_097), "a str of 4,097 characters"),
        (["a", "b"], "list"),
        (b"a", "bytes"),
    ],
)
def test_an_invalid_scope_is_refused_and_described(given: Any, said: str) -> None:  # noqa: ANN401
    with pytest.raises(InvalidRequest, match=rf"scope must be .* not {said}"):
        choose_scope(given, None, required=True)


@pytest.mark.parametrize("under", ["tenant-7", (), ("a", 7), None, ["tenant-7"]])
async def test_an_invalid_tuple_prefix_deletes_nothing(under: Any) -> None:  # noqa: ANN401
    storage = InMemoryStorage()
    offloader = Offloader(storage, policies={"*": Always()})
    offloader.offload([TextBlock("content\n")], tool_name="t", scope="tenant-7")

    with pytest.raises(InvalidRequest, match="under"):
        offloader.delete_scopes(under=under)
    with pytest.raises(InvalidRequest, match="under"):
        await offloader.adelete_scopes(under=under)
    assert len(storage.entries("")) == 1


def filled() -> tuple[Offloader, dict[Scope, str]]:
    offloader = Offloader(InMemoryStorage(), policies={"*": Always()})
    scopes: list[Scope] = ["tenant-7", ("tenant-7",), ("tenant-7", "a"), ("tenant-7", "b", "c"), ("tenant-77", "a")]
    references = {
        each: offloader.offload([TextBlock("the same content\n")], tool_name="t", scope=each).references[0].id
        for each in scopes
    }
    return offloader, references


def readable(offloader: Offloader, references: dict[Scope, str]) -> list[Scope]:
    found = []
    for each, reference in references.items():
        try:
            offloader.load(reference, scope=each)
        except ReferenceNotFound:
            continue
        found.append(each)
    return found


def test_only_scopes_that_begin_with_the_given_parts_are_deleted() -> None:
    offloader, references = filled()

    assert offloader.delete_scopes(under=("tenant-7", "b")) == 1
    assert offloader.delete_scopes(under=("tenant-7",)) == 2
    assert readable(offloader, references) == ["tenant-7", ("tenant-77", "a")]


async def test_deleting_a_tuple_scope_leaves_the_scopes_below_it_alone() -> None:
    offloader, references = filled()

    assert await offloader.adelete_scope(("tenant-7",)) == 1
    assert ("tenant-7", "a") in readable(offloader, references)
    assert await offloader.adelete_scopes(under=("tenant-7",)) == 2
    assert readable(offloader, references) == ["tenant-7", ("tenant-77", "a")]


def test_a_tuple_scope_reads_only_its_own_content() -> None:
    offloader, references = filled()

    for one, reference in references.items():
        for other in references:
            if other != one:
                with pytest.raises(ReferenceNotFound):
                    offloader.retrieve(reference, scope=other)
        assert "the same content" in offloader.retrieve(reference, scope=one).text
        assert offloader.expand(f"see {reference}", scope=one) == "see the same content\n"


def test_a_tuple_may_be_the_ambient_scope_or_the_identity_and_is_in_events() -> None:
    seen: list[Event] = []
    offloader = Offloader(DictStorage(), policies={"*": Always()}, on_event=seen.append)

    with scope(("tenant-7", "thread-3")):
        reference = offloader.offload([TextBlock("content\n")], tool_name="t").references[0]
    found = offloader.load(reference, identity=("tenant-7", "thread-3"))

    assert found.text == "content\n"
    assert [event.scope for event in seen] == [("tenant-7", "thread-3")]
    assert "tenant-7" not in str(seen[0].attributes)


def test_a_storage_that_chooses_its_references_keeps_tuple_scopes_apart() -> None:
    offloader = Offloader(Shelves(), policies={"*": Always()})
    reference = offloader.offload([TextBlock("content\n")], tool_name="t", scope=("a", "b")).references[0]

    assert offloader.load(reference, scope=("a", "b")).text == "content\n"
    for other in ("a", ("a",), ("ab",), "a/b"):
        with pytest.raises(ReferenceNotFound):
            offloader.load(reference, scope=other)
