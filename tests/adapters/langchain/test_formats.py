"""Messages that earlier versions rewrote: their references are found, and read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from langchain_core.messages import ToolMessage, messages_from_dict

from coatcheck import FileStorage, Offloader
from coatcheck_langchain import offloaded_references
from tests.formats.kept import check_conversation, every_version, left_by

if TYPE_CHECKING:
    from pathlib import Path


@every_version
def test_a_message_from_an_earlier_version_has_its_references(version: str, tmp_path: Path) -> None:
    left = left_by(version, "langchain", tmp_path)
    messages = messages_from_dict(json.loads((tmp_path / "messages.json").read_text()))

    found = [list(offloaded_references(message)) for message in messages if isinstance(message, ToolMessage)]

    assert found == left.references
    check_conversation(Offloader(FileStorage(tmp_path / "artifacts")), left)
