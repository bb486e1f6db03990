"""Every word that the model reads in place of an offloaded result.

These words are an interface: agents act on them, and hosts parse the marked parts (``[Offloaded: …]``,
``[Stored references:]``, ``| ref: R]``). The references come right after the first line: before the preview, so that
content cannot fake them, and early enough that the first one survives if a message is cut to its first 200 characters.

Three wordings are also parsed, in conversations of any age. The opening identifies a placeholder (``OPENINGS``). The
heading locates the references (``listed_in``). The line that a summary keeps names the references that it kept
(``kept_in``). ``keep_references`` uses the last two. To change the opening, write the new one and keep the old one in
``OPENINGS``. The other two must not change; hosts parse the heading too. All other lines may change.

Every request pays for the tool's definition, so it says only what a model needs to write a call. The notice, and the
tool's answers and errors, say how to go on. Nothing here cuts or counts; ``placeholder`` assembles the parts. The
wording of read-backs is in ``reading.wording``, that of the tool's arguments in ``arguments``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from coatcheck.core.facts import Estimate, Reference

__all__ = (
    "ALL_LOST",
    "CHARACTERS_KEPT",
    "ENDS_SHOWN",
    "FOR_TEXT",
    "INTERNAL_ERROR",
    "LEFT_OUT",
    "LIST_READ_INSTEAD",
    "MAX_KEPT",
    "MAX_LISTED",
    "NOT_LISTED_BY_STORAGE",
    "NOT_LISTED_WITHOUT_SCOPE",
    "NOT_SET_UP",
    "ONE_KEPT",
    "OPENINGS",
    "RETRIEVAL_DESCRIPTION",
    "RETRIEVAL_TOOL",
    "UNREADABLE",
    "block_heading",
    "block_left_out",
    "kept_in",
    "kept_references",
    "list_line",
    "list_row",
    "listed_in",
    "malformed_reference",
    "media_placeholder",
    "miss",
    "missing_reference",
    "no_reference",
    "notice",
    "one_line",
    "reference_line",
    "too_slow",
    "truncation_notice",
    "unknown_arguments",
)

RETRIEVAL_TOOL = "retrieve_offloaded_content"
"""The name of the one tool that reads back, the same in every framework."""

RETRIEVAL_DESCRIPTION = "Read or search an offloaded tool result; without a reference, list them."
"""The tool's description for the model."""

UNREADABLE = (
    "The stored content cannot be read now: the storage failed. Try this call once more; if it fails again, call again"
    " the tool whose result the reference replaced."
)
"""The message when a storage fails."""

NOT_SET_UP = (
    "Nothing can be read back here: the application is not set up for it. Do not retry: call again the tool whose"
    " result the reference replaced."
)
"""The message when only the host can fix the read-back."""

FOR_TEXT = "call the tool that returned it again if it can return text"
"""What a model can do about content that is not text and cannot be shown."""

INTERNAL_ERROR = (
    "The stored content cannot be read: this tool has an internal error. Your call is not the cause, and trying again"
    " will not help. Go on without the content, or call again the tool whose result the reference replaced, so that it"
    " returns less."
)
"""The message when a bug in coatcheck, an adapter or the host ends a read."""

MAX_LISTED = 8
"""The most references that a placeholder lists one by one. With more, it lists the first 4, the last 2 and a stored
index."""

MAX_KEPT, CHARACTERS_KEPT = 20, 1_600
"""The most references that a summary keeps, and the most characters that they have in total. The retrieval tool lists
older ones, so the line need not grow. Our own references always fit; those that a storage chose may be paths."""

ONE_KEPT = r"[\w./:@%+=~'\\-]{0,999}[\w/:@%+=~'\\-]"
"""Matches a reference that a storage chose and a summary can keep: one word, of characters that paths and addresses
have. A dot at its end could not be told from that of the sentence."""

_STILL_READS = " still reads the stored results "
_OLDER = " and older ones"
_KEEP = "Keep word for word: "
_KEPT = rf"{_KEEP}[^\n]{{1,1000}}?{_STILL_READS}((?:{ONE_KEPT}, )*{ONE_KEPT})(?={_OLDER}|\.(?!\S))"

_OPENING = "Tool result offloaded. [Offloaded: "
"""The beginning of every placeholder."""

OPENINGS = (_OPENING,)
"""The openings of placeholders of any version: the current one first, then older ones."""

_HEADING = "[Stored references:]"
"""The line above the references, in every version. Each reference takes one line, which begins with two spaces."""

_LINES_OF_REFERENCES = rf"\n{re.escape(_HEADING)}\r?((?:\n  .*)*)"

_WHICH_REFERENCE = f"copy it from the placeholder, the first word of a line under {_HEADING}"

_INCOMPLETE = "INCOMPLETE: do not guess the rest or repeat this call for it."
"""The line after the references."""

_COMPLETE = "COMPLETE: all of it is below."
"""The line after the references if the preview is the whole content."""

_NOT_SHOWN = r"[\s\[\]|\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]+"
"""White space, the brackets and bars that a notice uses, and control characters, including those for writing
direction."""

_LONGEST_NAME = 64
_LONGEST_ARGUMENT = 40
_MAX_ARGUMENTS = 5
_LONGEST_PATH = 256
"""Characters. A truncated path is useless, so a longer one is not shown."""

_NOT_IN_A_PATH = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Control characters, line ends and surrogates. File names may contain other white space."""


def notice(
    references: Sequence[str],
    *,
    blocks: int,
    tokens: Estimate,
    retrieval_tool: str | None,
    selectors: Mapping[str, str],
    whole: bool = False,
) -> str:
    """Return the beginning of a placeholder: what was offloaded, the references, what not to do, how to read on.

    It does not name the tool that was called: a name may have 128 characters, and the model knows which call the result
    belongs to.

    Args:
        references: lines from ``reference_line``.
        blocks: how many content blocks were offloaded.
        tokens: how many tokens they would have taken.
        retrieval_tool: the name of the agent's retrieval tool, or None if it has none. A name with a space is a shell
            command that reads back, without the reference.
        selectors: the tool's arguments to propose, each with its form in a shell: ``arguments.PROPOSED``. Empty if none
            of the content is text.
        whole: whether the preview is the whole content, as for a small result under ``Always``.

    """
    opening = f"{_OPENING}{blocks} {'block' if blocks == 1 else 'blocks'}, ~{tokens.tokens:,} tokens]"
    rest = "it again" if whole else "more" if selectors or retrieval_tool is None else "it"
    if retrieval_tool is None:
        way = f"To read {rest}: use your available tools with a reference above."
    elif " " in retrieval_tool:
        way = f"To read {rest}, run: {retrieval_tool} REFERENCE {' | '.join(selectors.values())}".rstrip()
    elif selectors:
        way = f"To read {rest}: {retrieval_tool}(reference, {' | '.join(selectors)})"
    else:
        way = f"To read {rest}: {retrieval_tool}(reference)"
    return "\n".join((opening, _HEADING, *references, _COMPLETE if whole else _INCOMPLETE, way))


def reference_line(reference: Reference, *, path: str | None = None) -> str:
    """Return the line that names one stored block.

    A path is omitted if it is too long, or if a line cannot hold it: it has a control character, a line end or bytes
    that are not Unicode.
    """
    is_shown = path is not None and len(path) <= _LONGEST_PATH and not _NOT_IN_A_PATH.search(path)
    where = f", file: {path}" if is_shown else ""
    items = "" if reference.items is None else f"{reference.items:,} items, "
    return f"  {reference.id} ({one_line(reference.content_type)}, {items}{reference.size:,} bytes{where})"


def list_line(reference: Reference, *, hidden: int) -> str:
    """Return the line that names the stored list of all references; ``hidden`` is how many of them are not shown."""
    return f"  {reference.id} (index: lists all references, including the {hidden:,} not shown here)"


def list_row(position: int, reference: Reference) -> str:
    """Return that list's row for the block at ``position``, counted from 1."""
    return f"{position} {reference.id} {one_line(reference.content_type)} {reference.size} bytes"


def block_heading(reference: Reference) -> str:
    """Return the line above one of several previews."""
    return f"[Preview of {reference.id}]"


def media_placeholder(media_type: str, size: int, *, name: str | None, reference: str | None) -> str:
    """Return what replaces an image, audio, video or document.

    For example ``[image: png, 104 bytes | ref: R]`` or ``[document: pdf, report.pdf, 108 bytes | ref: R]``.
    """
    kind, _, subtype = media_type.partition("/")
    if kind not in {"image", "audio", "video"}:
        kind = "document"
    parts = [one_line(subtype) or "unknown", *([one_line(name)] if name else []), f"{size} bytes"]
    return f"[{kind}: {', '.join(parts)}{f' | ref: {reference}' if reference is not None else ' | not stored'}]"


def truncation_notice(*, tool_name: str, tokens: Estimate, reason: str) -> str:
    """Return the first lines of a result that was cut because it was too large and could not be stored."""
    return (
        f"Tool result cut. [Of ~{tokens.tokens:,} tokens only the parts below are kept]\n"
        f"INCOMPLETE: the rest is lost, because it could not be stored ({one_line(reason, longest=200)}). Do not guess"
        f" it. If you need it, call {one_line(tool_name)} so that it returns less."
    )


ENDS_SHOWN = "[No preview could be made: these are its first and its last characters.]"
"""The line above the head and tail of a stored result, if its preview failed."""

LEFT_OUT = "[… not shown …]"
"""The line between head and tail if the part between them was not counted."""


def block_left_out(size: int) -> str:
    """Return what replaces a block that is not text, is far too large, and could not be described."""
    return f"[a block of about {size:,} bytes is not shown]"


ALL_LOST = (
    "Tool result cut. [Nothing of it is kept]\nINCOMPLETE: the result is lost, because it could neither be stored nor"
    " shown. Do not guess it. If you need it, repeat the call so that it returns less."
)
"""Replaces a result if even cutting it failed."""


def kept_references(references: Sequence[str], *, more: bool, reader: str, lister: str) -> str:
    """Return the line that a summary keeps in place of the placeholders that it replaces.

    Args:
        references: oldest first; if there are none, the line is empty.
        more: whether there are older references.
        reader: the tool or command that reads them.
        lister: the call that lists the older ones.

    """
    if not references:
        return ""
    older = f"{_OLDER}, which {lister} lists" if more else ""
    return f"{_KEEP}{reader}{_STILL_READS}{', '.join(references)}{older}."


def kept_in(text: str) -> list[str]:
    """Return the references in the lines that ``kept_references`` made, including those that a storage chose."""
    found = (reference for named in re.findall(_KEPT, text, re.ASCII) for reference in named.split(", "))
    return [reference for reference in found if re.search(r"[/\\\d]", reference)]  # not an ordinary word


def listed_in(placeholder: str) -> list[str]:
    """Return the references in a placeholder of any version: the first word of each line under the heading.

    If a host joined its lines, the references cannot be told from the preview, and the whole placeholder is returned as
    the only item.
    """
    found = re.search(_LINES_OF_REFERENCES, placeholder)
    return [placeholder] if found is None else re.findall(r"\n  (\S+)", found[1])


def miss(reference: str, *, expired: bool) -> str:
    """Return the message for a reference that cannot be read. It says not to retry, and what to do instead."""
    if expired:
        return (
            f"reference expired: {one_line(reference)}. Its content is no longer stored here. Do not retry this"
            " reference: call again the tool whose result it replaced, with the same arguments."
        )
    return (
        f"reference not found: {one_line(reference)}. This conversation has no such content. Do not retry this"
        " reference: check it against the placeholder, or call again the tool whose result it replaced."
    )


def missing_reference(why_not_listed: str = "") -> str:
    """Return the message for a call without a reference; ``why_not_listed`` explains why it gets no list instead."""
    return f"reference is missing: {_WHICH_REFERENCE}{why_not_listed}"


LIST_READ_INSTEAD = ". The list of what is stored was read instead: "
NOT_LISTED_WITHOUT_SCOPE = (
    ". What is stored cannot be listed here, because conversations share it. If the placeholder is gone, call again the"
    " tool whose result it replaced"
)
NOT_LISTED_BY_STORAGE = (
    ". What is stored cannot be listed here, because this storage has no list. If the placeholder is gone, call again"
    " the tool whose result it replaced"
)


def malformed_reference(given: str) -> str:
    """Return the message for a reference of the wrong type or length; ``given`` describes it."""
    return f"reference must be one reference as a string, not {given}: {_WHICH_REFERENCE}"


def no_reference(given: str, *, is_part: bool) -> str:
    """Return the message for a string that does not have the form of a reference.

    ``is_part`` says whether the string contains part of a reference. If it does not, the message is as short as
    Strands' own, because hosts that switched to this package compare it.
    """
    how = ". It is not one whole reference: copy one from a placeholder." if is_part else ""
    return f"reference not found: {one_line(given)}{how}"


def too_slow(seconds: float) -> str:
    """Return the message for a request that takes too long on this content."""
    return (
        f"stopped after {seconds:g} seconds: use a simpler pattern, without repeats inside repeats, or search a"
        " line_range"
    )


def unknown_arguments(names: Sequence[str], *, accepted: Iterable[str]) -> str:
    """Return the message for arguments that the tool does not have."""
    shown = ", ".join(repr(name[:_LONGEST_ARGUMENT]) for name in names[:_MAX_ARGUMENTS])
    return f"unknown arguments: {shown}; accepted are {', '.join(accepted)}"


def one_line(text: str, *, longest: int = _LONGEST_NAME) -> str:
    """Return foreign text in a form that cannot break the notice: one line, no brackets, bounded length."""
    line = re.sub(_NOT_SHOWN, " ", text[: 4 * longest]).strip()
    return line if len(line) <= longest else line[: longest - 1] + "…"
