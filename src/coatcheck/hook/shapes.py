"""Where the texts of a tool's response are, and the same response with some of them replaced.

A client checks that a replaced response has the shape of that tool's own, and otherwise shows the original without a
word. So nothing here knows the fields of a tool: a text that is too large is replaced where it is, and everything else
is copied. A table of tools and fields was rejected, because clients change them without saying so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from coatcheck.core.forks import loading

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ("Path", "large_texts", "replaced", "stays", "without_copy")

Path: TypeAlias = tuple["str | int", ...]
"""The keys and indexes that lead to a text, or to a list of texts that are replaced by one."""

LEAST_BYTES = 4_000
"""A smaller text is never replaced: its placeholder would take as much."""

_MOST_LEVELS = 50
"""Deeper values stay as they are."""

_WRITES = frozenset({"Edit", "MultiEdit", "NotebookEdit", "TodoWrite", "Write"})
"""Tools with a response that the client draws for people; the model reads a line or two of it."""

_MEDIA = frozenset({"audio", "image", "notebook", "parts", "pdf"})
_NOT_TEXT = frozenset({"base64", "blob"})


def stays(tool_name: str, response: object) -> bool:
    """Return whether a response stays at any size: it holds media, or the client has put it into a file itself."""
    if not isinstance(response, dict):
        return False
    return tool_name in _WRITES or bool(response.get("persistedOutputPath") or response.get("isImage"))


def large_texts(response: object, limit: int) -> dict[Path, str]:
    """Return the texts that must go so that what stays has at most ``limit`` bytes, as far as that is possible."""
    found = {path: (text, len(text.encode("utf-8", "surrogatepass"))) for path, text in _texts(response, ())}
    left = sum(size for _, size in found.values())
    chosen: dict[Path, str] = {}
    for path, (text, size) in sorted(found.items(), key=lambda item: item[1][1], reverse=True):
        if left <= limit or size < LEAST_BYTES:
            break
        chosen[path] = text
        left -= size
    return chosen


def replaced(response: Any, texts: Mapping[Path, str]) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Return a copy of a response with these texts in their places."""
    changed = response
    for path, text in texts.items():
        changed = _with(changed, path, text)
    return changed


def without_copy(response: object) -> object:
    """Return a response without MCP's ``structuredContent`` where that only repeats the texts of ``content``."""
    if not (
        isinstance(response, dict) and "structuredContent" in response and isinstance(response.get("content"), list)
    ):
        return response
    with loading:
        from coatcheck.core.items import find_copy  # noqa: PLC0415 - not for a small result

    texts = [text for text in map(_text_of, response["content"]) if text is not None]
    if find_copy(response["structuredContent"], texts) is None:
        return response
    return {key: value for key, value in response.items() if key != "structuredContent"}


def _texts(value: object, path: Path) -> Iterator[tuple[Path, str]]:
    if len(path) > _MOST_LEVELS:
        return
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        if value.get("type") not in _MEDIA:
            for key, member in value.items():
                if key not in _NOT_TEXT:
                    yield from _texts(member, (*path, key))
    elif isinstance(value, list):
        joined = _joined(value)
        if joined is not None:
            yield path, joined
        else:
            for index, item in enumerate(value):
                yield from _texts(item, (*path, index))


def _joined(items: list[Any]) -> str | None:
    """Return the lines of a list of ``str``, or of blocks of text, that become one; None for any other list."""
    texts = [_text_of(item) for item in items]
    lines = [text for text in texts if text is not None]
    return "\n".join(lines) if lines and len(lines) == len(texts) else None


def _text_of(item: object) -> str | None:
    if isinstance(item, dict):
        item = item.get("text") if item.get("type") == "text" else None
    return item if isinstance(item, str) else None


def _with(value: Any, path: Path, text: str) -> Any:  # noqa: ANN401 - as above
    if path:
        copy = value.copy()
        copy[path[0]] = _with(value[path[0]], path[1:], text)
        return copy
    if isinstance(value, list):
        return [{**value[0], "text": text} if isinstance(value[0], dict) else text]
    return text
