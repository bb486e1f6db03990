"""Arguments of an offloader that host code gets wrong: each is refused by name, before anything is done."""

from __future__ import annotations

import pytest

from coatcheck import Always, InMemoryStorage, InvalidRequest, Offloader, TextBlock
from coatcheck import scope as ambient_scope


async def test_deleting_no_scope_deletes_nothing_of_the_ambient_one() -> None:
    offloader = Offloader(InMemoryStorage(), policies={"*": Always()})
    kept = offloader.offload([TextBlock("a result\n")], tool_name="t", scope="mine").references[0]

    with ambient_scope("mine"):
        for nothing in (None, ""):
            with pytest.raises(InvalidRequest, match=r"^scope must be a str of 1 to .* not "):
                offloader.delete_scope(nothing)  # type: ignore[arg-type]
            with pytest.raises(InvalidRequest, match=r"^scope must be a str of 1 to .* not "):
                await offloader.adelete_scope(nothing)  # type: ignore[arg-type]

    assert offloader.load(kept, scope="mine").text == "a result\n"
