"""Add the entries of ``coatcheck hook`` to the settings of Claude Code, and take them out again.

Only text and values belong here; ``files`` writes, and the command line knows what the entries say.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from coatcheck import InvalidRequest
from coatcheck.hook import split_hook
from coatcheck_mcp.install.spans import comments, parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from coatcheck_mcp.install.spans import Member, Value

__all__ = ("command_in", "with_hook", "without_hook")

_EVENTS = ("PostToolUse", "SessionStart")
"""The events that the hook answers; the first is its main purpose."""

_BLANKS = " \t\r\n"


def with_hook(text: str, *, entries: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the text of a settings file with these entries, by event. If our entry is there, only its command changes.

    Everything else in our entry is the user's own: matcher, timeout, and what the client may add.

    Raises:
        InvalidRequest: the settings are not understood, or have the hook twice; the message says why.

    """
    for event, entry in entries.items():
        text = _with_entry(text, event, entry)
    return text


def _with_entry(text: str, event: str, entry: Mapping[str, Any]) -> str:
    found = _only(parse(text), event)
    (command,) = [each["command"] for each in entry["hooks"]]
    if found is not None:
        same = found.string == command
        return text if same else text[: found.start] + json.dumps(command, ensure_ascii=False) + text[found.end :]
    place = _require(parse(text), "the file", members=True)
    for depth, name in enumerate(("hooks", event)):
        member = place.member(name)
        if member is None:
            wrapped = {event: [entry]} if name == "hooks" else [entry]
            return _inserted(text, place, wrapped, depth=depth, name=name)
        place = _require(member.value, name, members=name == "hooks")
    return _inserted(text, place, entry, depth=2)


def without_hook(text: str) -> str:
    """Return the text of a settings file without the hook, and without what ``with_hook`` put around it. Comments stay.

    Raises:
        InvalidRequest: it is not JSON, with or without comments; the message begins with the number of the line.

    """
    while (path := _path_to_ours(parse(text))) is not None:
        # Also remove the containers that hold nothing but our command.
        stays = [_holds_more(text, *each) for each in path]
        stays[1:3] = [more or _was_empty(each) for more, (each, _) in zip(stays[1:3], path[1:3], strict=True)]
        container, index = path[max((level for level, each in enumerate(stays) if each), default=0)]
        text = _removed(text, container, index)
    return text


def command_in(text: str) -> str:
    """Return the command of the hook in a settings file; empty if the hook is not there.

    Raises:
        InvalidRequest: it is not JSON, with or without comments; the message begins with the number of the line. Or
            the hook is there twice.

    """
    root = parse(text)
    found = [command for event in _EVENTS if (command := _only(root, event)) is not None]
    return found[0].string or "" if found else ""


def _only(root: Value, event: str) -> Value | None:
    found = [command for _, command in _ours(root, event)]
    if len(found) > 1:
        msg = (
            f"it runs coatcheck hook {len(found)} times at {event}: delete all but one by hand, or run `coatcheck hook"
            " uninstall`"
        )
        raise InvalidRequest(msg)
    return found[0] if found else None


def _require(value: Value, name: str, *, members: bool) -> Value:
    if (value.members if members else value.items) is None:
        msg = f"{name} must be {'an object' if members else 'an array'}, as Claude Code documents it; edit it by hand"
        raise InvalidRequest(msg)
    return value


def _path_to_ours(root: Value) -> list[tuple[Value, int]] | None:
    """Return the containers that lead to our last command, each with the index of the part that leads on."""
    found = [path for event in _EVENTS for path, _ in _ours(root, event)]
    return found[-1] if found else None


def _ours(root: Value, event: str) -> Iterator[tuple[list[tuple[Value, int]], Value]]:
    """Yield our commands for an event, each preceded by the containers that lead to it."""
    hooks = root.member("hooks")
    entries = None if hooks is None else hooks.value.member(event)
    if hooks is None or entries is None:
        return
    above = [(root, _index(root, hooks)), (hooks.value, _index(hooks.value, entries))]
    for number, entry in enumerate(entries.value.items or ()):
        listed = entry.member("hooks")
        for position, each in enumerate(() if listed is None else listed.value.items or ()):
            command = each.member("command")
            words = None if command is None else command.value.string
            if listed is not None and command is not None and words is not None and split_hook(words) is not None:
                yield [*above, (entries.value, number), (listed.value, position)], command.value


def _index(container: Value, member: Member) -> int:
    return (container.members or ()).index(member)


def _parts(container: Value) -> list[tuple[int, int]]:
    """Return where each member or item of a container begins and ends."""
    members = [(member.key.start, member.value.end) for member in container.members or ()]
    return members or [(item.start, item.end) for item in container.items or ()]


def _holds_more(text: str, container: Value, index: int) -> bool:
    """Return whether a container holds more than this part: another one, or a comment."""
    parts = _parts(container)
    start, end = parts[index]
    around = text[container.start + 1 : start] + text[end : container.end - 1]
    return len(parts) > 1 or not set(around) <= {*_BLANKS, ","}


def _was_empty(container: Value) -> bool:
    """Return whether ``with_hook`` found the container empty: only then does nothing precede its first part."""
    return _parts(container)[0][0] == container.start + 1


def _inserted(text: str, container: Value, new: object, *, depth: int, name: str | None = None) -> str:
    """Return the text with one more member or item at the end of a container, in the layout of the file."""
    line = "\r\n" if "\r\n" in text else "\n"
    unit = (re.search(r"\n([ \t]+)\S", text) or ["", "  "])[1]
    outer, inner = line + unit * depth, line + unit * (depth + 1)
    words = json.dumps(new, indent=unit, ensure_ascii=False).replace("\n", inner)
    words = words if name is None else f"{json.dumps(name)}: {words}"
    parts = _parts(container)
    if parts:
        return f"{text[: parts[-1][1]]},{inner}{words}{text[parts[-1][1] :]}"
    opening = container.start + 1
    if depth:  # right after the bracket, for ``_was_empty``
        return f"{text[:opening]}{words}{text[opening:]}"
    inside = text[opening : container.end - 1]  # blanks, or a comment
    return f"{text[:opening]}{inner}{words}{inside if inside.strip() else outer}{text[container.end - 1 :]}"


def _removed(text: str, container: Value, index: int) -> str:
    """Return the text without a member or item of a container, and without the comma that it needed."""
    parts = _parts(container)
    start, end = parts[index]
    if index + 1 < len(parts):
        after = parts[index + 1][0]
        return text[:start] + comments(text[end:after]) + text[after:]
    if index:
        before = parts[index - 1][1]
        return text[:before] + comments(text[before:start]) + text[end:]
    opening, closing = container.start + 1, container.end - 1
    left = comments(text[opening:start], text[end:closing])
    if not left and start == opening:
        left = text[end:closing].replace(",", "")  # the blanks that were there before ``with_hook``
    return text[:opening] + left + text[closing:]
