"""What all adapters share, for authors of adapters: ``docs/writing-an-adapter.md`` builds a whole adapter on it.

An adapter is two conversions and one hook. Everything around them is here: the guards that keep a failure of ours from
ending an agent, the checks of what users pass, base64, marks, and the lazy loading of a package's public names. Each
name loads its module on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.core.lazy import lazily

if TYPE_CHECKING:
    from coatcheck.adapting.answers import Failure, aanswer, answer
    from coatcheck.adapting.arguments import (
        OtherOptions,
        ScopeOption,
        StorageOrOffloader,
        check_name,
        check_names,
        check_scope,
        enter_scope,
        make_offloader,
        parse_bytes,
        parse_seconds,
        refuse_name_clash,
        refuse_options,
        resolve_scope,
    )
    from coatcheck.adapting.compaction import find_references_in, keep_references, references_of_results
    from coatcheck.adapting.content import (
        MARK,
        Copy,
        decode_base64,
        decode_data_url,
        encode_base64,
        find_copy,
        is_light,
        json_value,
        mark_reference,
        plain_blocks,
        read_marks,
        references_in,
        text_tokens,
        texts_in,
    )
    from coatcheck.adapting.guards import (
        FAILED,
        Arrival,
        Batch,
        Delivery,
        OneResult,
        RetrievalName,
        WarnOnce,
        asettle,
        asks_to_keep,
        call_off_loop,
        is_called_by_code,
        is_for_code_only,
        settle,
        without_iterators,
    )
    from coatcheck.adapting.items import McpItem, blocks_of_items, items_of_blocks
    from coatcheck.adapting.offering import OFFERED, OfferTool, is_offered_late, needs_retrieval_tool
    from coatcheck.adapting.package import front_door

__all__ = (
    "FAILED",
    "MARK",
    "OFFERED",
    "Arrival",
    "Batch",
    "Copy",
    "Delivery",
    "Failure",
    "McpItem",
    "OfferTool",
    "OneResult",
    "OtherOptions",
    "RetrievalName",
    "ScopeOption",
    "StorageOrOffloader",
    "WarnOnce",
    "aanswer",
    "answer",
    "asettle",
    "asks_to_keep",
    "blocks_of_items",
    "call_off_loop",
    "check_name",
    "check_names",
    "check_scope",
    "decode_base64",
    "decode_data_url",
    "encode_base64",
    "enter_scope",
    "find_copy",
    "find_references_in",
    "front_door",
    "is_called_by_code",
    "is_for_code_only",
    "is_light",
    "is_offered_late",
    "items_of_blocks",
    "json_value",
    "keep_references",
    "make_offloader",
    "mark_reference",
    "needs_retrieval_tool",
    "parse_bytes",
    "parse_seconds",
    "plain_blocks",
    "read_marks",
    "references_in",
    "references_of_results",
    "refuse_name_clash",
    "refuse_options",
    "resolve_scope",
    "settle",
    "text_tokens",
    "texts_in",
    "without_iterators",
)

if not TYPE_CHECKING:  # a type checker that sees __getattr__ accepts any misspelled name
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "answers": ("Failure", "aanswer", "answer"),
            "arguments": (
                "OtherOptions",
                "ScopeOption",
                "StorageOrOffloader",
                "check_name",
                "check_names",
                "check_scope",
                "enter_scope",
                "make_offloader",
                "parse_bytes",
                "parse_seconds",
                "refuse_name_clash",
                "refuse_options",
                "resolve_scope",
            ),
            "compaction": ("find_references_in", "keep_references", "references_of_results"),
            "content": (
                "MARK",
                "Copy",
                "decode_base64",
                "decode_data_url",
                "encode_base64",
                "find_copy",
                "is_light",
                "json_value",
                "mark_reference",
                "plain_blocks",
                "read_marks",
                "references_in",
                "text_tokens",
                "texts_in",
            ),
            "guards": (
                "FAILED",
                "Arrival",
                "Batch",
                "Delivery",
                "OneResult",
                "RetrievalName",
                "WarnOnce",
                "asettle",
                "asks_to_keep",
                "call_off_loop",
                "is_called_by_code",
                "is_for_code_only",
                "settle",
                "without_iterators",
            ),
            "items": ("McpItem", "blocks_of_items", "items_of_blocks"),
            "offering": ("OFFERED", "OfferTool", "is_offered_late", "needs_retrieval_tool"),
            "package": ("front_door",),
        },
    )
