"""Scenarios of one tool result: thresholds, shapes of text, content blocks, errors.

To add a scenario, add a value. Here, text of exactly n tokens has 4n ASCII characters; see ``scenario.KNOBS``.
"""

from __future__ import annotations

import json

from coatcheck.core.blocks import JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck.core.policy import Always
from coatcheck.core.tokens import TiktokenCounter
from coatcheck.testing.samples import ODD_TEXT, long_line, noise, numbered_lines, orders, stored
from coatcheck.testing.scenario import BIG, MIDDLE, Call, Scenario

__all__ = ("RESULT_SCENARIOS",)

IMAGE = MediaBlock(noise(1_000), "image/png")
TYPES = ("image/png", "image/jpeg")
DOCUMENT = MediaBlock(noise(2_000, seed=1), "application/pdf", name="report.pdf")
ORDERS = orders(500)
MANY_TEXTS = tuple(TextBlock(f"item {number}\nof many\n" * 5) for number in range(60))

RESULT_SCENARIOS: tuple[Scenario, ...] = (
    # The threshold.
    Scenario(
        name="below the threshold",
        promise="A result below the threshold reaches the model as if there were no offloading, and nothing is stored.",
        steps=((Call(returns=(TextBlock("x" * 2_399),), becomes="kept"),),),
        holds=(),
    ),
    Scenario(
        name="at the threshold",
        promise="A result of exactly as many tokens as the threshold stays.",
        steps=((Call(returns=(TextBlock("x" * 2_400),), becomes="kept"),),),
        holds=(),
    ),
    Scenario(
        name="just above the threshold",
        promise="One token more is offloaded: stored whole, shown as a placeholder.",
        steps=((Call(returns=(TextBlock("x" * 2_401),)),),),
        sees=("[Offloaded: 1 block, ~601 tokens]", "INCOMPLETE"),
        holds=(b"x" * 2_401,),
    ),
    Scenario(
        name="default settings",
        promise="The defaults, with the bundled vocabulary, offload a usual large result and show head and tail.",
        steps=((Call(returns=(TextBlock(numbered_lines(2_000)),)),),),
        knobs={"token_counter": TiktokenCounter(), "max_result_tokens": 2_500, "preview_tokens": None},
        sees=("line 1 of 2,000", "line 2,000 of 2,000", "repeat this call"),
        hides=("line 1,000 of 2,000",),
    ),
    Scenario(
        name="tool name of 64 characters",
        promise="Even after the longest name that providers accept, the first 200 characters hold the first reference.",
        steps=((Call(returns=(BIG,), tool="search_" + "n" * 57),),),
        sees=("search_nnnn",),
        hides=(MIDDLE,),
        holds=(stored(BIG.text),),
    ),
    # Sizes and shapes of text.
    Scenario(
        name="one huge line",
        promise="A line larger than the window is shown by its head and its tail, with the gap named in characters.",
        steps=((Call(returns=(TextBlock(long_line(300_000)),)),),),
        sees=("<0>", "<299990>", "characters"),
        hides=("<150000>",),
        holds=(stored(long_line(300_000)),),
    ),
    Scenario(
        name="ten megabytes",
        promise="Size does not matter: the placeholder is as short as ever, and every byte is stored.",
        steps=((Call(returns=(TextBlock(numbered_lines(250_000)),)),),),
        sees=("line 1 of 250,000", "line 250,000 of 250,000"),
        hides=("line 125,000 of 250,000",),
        holds=(stored(numbered_lines(250_000)),),
    ),
    Scenario(
        name="odd characters",
        promise="Lone surrogates, NUL, odd line ends and joined emoji are stored exactly, and shown as valid Unicode.",
        steps=((Call(returns=(TextBlock(ODD_TEXT),)),),),
        hides=("\ud800", "\udfff"),
        holds=(stored(ODD_TEXT),),
    ),
    Scenario(
        name="JSON list in a text",
        promise="Text that is a JSON list is stored as the text it is, and shown by its shape and its records.",
        steps=((Call(returns=(TextBlock(json.dumps(ORDERS)),)),),),
        sees=("list of 500 objects", "customer", "|customer 1|", "|customer 500|"),
        hides=("|customer 250|",),
        holds=(stored(json.dumps(ORDERS)),),
    ),
    Scenario(
        name="JSON object in a text",
        promise="Text that is a JSON object, spaces and line ends included, is stored as the text it is.",
        steps=((Call(returns=(TextBlock(json.dumps({"orders": ORDERS, "next": None}, indent=2)),)),),),
        sees=("object with 2 keys", "orders: list of 500 objects", "next: null"),
        holds=(stored(json.dumps({"orders": ORDERS, "next": None}, indent=2)),),
    ),
    Scenario(
        name="empty result",
        promise="A result without content stays: there is nothing to store.",
        steps=((Call(returns=(TextBlock(""),), becomes="kept"),),),
        knobs={"policies": {"*": Always()}},
        holds=(),
    ),
    # Content blocks.
    Scenario(
        name="JSON list block",
        promise="A JSON value that the framework carries as a value is stored as JSON.",
        steps=((Call(returns=(JsonBlock(ORDERS),)),),),
        sees=("list of 500 objects", "application/json"),
        holds=(json.dumps(ORDERS, separators=(",", ":")).encode(),),
    ),
    Scenario(
        name="JSON object block",
        promise="The same for an object.",
        steps=((Call(returns=(JsonBlock({"orders": ORDERS}),)),),),
        sees=("object with 1 key", "application/json"),
        holds=(json.dumps({"orders": ORDERS}, separators=(",", ":")).encode(),),
    ),
    Scenario(
        name="several texts",
        promise="Each block is stored by itself, in order, and each has a preview under its reference.",
        steps=((Call(returns=(TextBlock("first\n" * 500), TextBlock("second\n" * 500), TextBlock("third\n" * 500))),),),
        sees=("[Offloaded: 3 blocks", "first\n", "second\n", "third\n", "[Preview of fetch-"),
        holds=(b"first\n" * 500, b"second\n" * 500, b"third\n" * 500),
    ),
    Scenario(
        name="more texts than are shown one by one",
        promise="More than eight text blocks, as MCP servers return lists, become one content, joined by line ends.",
        steps=((Call(returns=(*MANY_TEXTS[:30], IMAGE, *MANY_TEXTS[30:])),),),
        sees=("[Offloaded: 61 blocks", "60 items", "[image: png, 1000 bytes | ref: "),
        hides=("item 30\n",),
        holds=(stored("\n".join(block.text for block in MANY_TEXTS)), IMAGE.data),
    ),
    Scenario(
        name="more contents than are listed",
        promise="With many images the notice lists the first, the last, and an index that lists all.",
        steps=((Call(returns=tuple(MediaBlock(noise(500, seed=number), TYPES[number % 2]) for number in range(12))),),),
        sees=("[Offloaded: 12 blocks", "(index: lists all references"),
    ),
    Scenario(
        name="small blocks together above the threshold",
        promise="The whole result is measured, not each block.",
        steps=((Call(returns=tuple(TextBlock(f"{number}" * 900) for number in range(3))),),),
        sees=("[Offloaded: 3 blocks",),
        holds=tuple(f"{number}".encode() * 900 for number in range(3)),
    ),
    Scenario(
        name="mixed media",
        promise="Text, image, JSON and document of one result are offloaded together; media become marks, in order.",
        steps=((Call(returns=(BIG, IMAGE, JsonBlock({"page": 1}), DOCUMENT)),),),
        sees=(
            "[Offloaded: 4 blocks",
            "[image: png, 1000 bytes | ref: ",
            "[document: pdf, report.pdf, 2000 bytes | ref: ",
        ),
        hides=(MIDDLE,),
        holds=(stored(BIG.text), IMAGE.data, b'{"page":1}', DOCUMENT.data),
    ),
    Scenario(
        name="text and media",
        promise="The same where the framework has no JSON content.",
        steps=((Call(returns=(BIG, IMAGE, DOCUMENT)),),),
        sees=("[image: png, 1000 bytes | ref: ", "[document: pdf, report.pdf, 2000 bytes | ref: "),
        hides=(MIDDLE,),
        holds=(stored(BIG.text), IMAGE.data, DOCUMENT.data),
    ),
    Scenario(
        name="unknown block first",
        promise="A block that coatcheck does not know passes through untouched; the text after it is still offloaded.",
        steps=((Call(returns=(OpaqueBlock("unknown content"), BIG)),),),
        sees=("unknown content",),
        hides=(MIDDLE,),
        holds=(stored(BIG.text),),
    ),
    Scenario(
        name="empty block first",
        promise="An empty block in front does not keep the large one behind it in the conversation.",
        steps=((Call(returns=(TextBlock(""), BIG)),),),
        hides=(MIDDLE,),
        holds=(stored(BIG.text),),
    ),
    Scenario(
        name="image",
        promise="An image becomes a mark with its format, its size and its reference.",
        steps=((Call(returns=(IMAGE,)),),),
        sees=("[image: png, 1000 bytes | ref: ",),
        holds=(IMAGE.data,),
    ),
    Scenario(
        name="image below the threshold",
        promise="An image is measured by its kind, not by its length in base64: this one stays.",
        steps=((Call(returns=(MediaBlock(noise(100_000), "image/png"),), becomes="kept"),),),
        knobs={"max_result_tokens": 2_000},
        holds=(),
    ),
    Scenario(
        name="document",
        promise="A document's mark carries its name, which never becomes a path.",
        steps=((Call(returns=(MediaBlock(noise(500), "application/pdf", name="../../etc/passwd"),)),),),
        sees=("[document: pdf, ../../etc/passwd, 500 bytes | ref: ",),
        holds=(noise(500),),
    ),
    Scenario(
        name="document without a name",
        promise="A document without a name becomes a mark with its format, its size and its reference.",
        steps=((Call(returns=(MediaBlock(noise(600), "application/pdf"),)),),),
        sees=("[document: pdf, 600 bytes | ref: ",),
        holds=(noise(600),),
    ),
    Scenario(
        name="text and document without a name",
        promise="The same next to a text block.",
        steps=((Call(returns=(BIG, MediaBlock(noise(600), "application/pdf"))),),),
        sees=("[document: pdf, 600 bytes | ref: ",),
        hides=(MIDDLE,),
        holds=(stored(BIG.text), noise(600)),
    ),
    Scenario(
        name="audio",
        promise="Audio becomes a mark like an image.",
        steps=((Call(returns=(MediaBlock(noise(800), "audio/wav"),)),),),
        sees=("[audio: wav, 800 bytes | ref: ",),
        holds=(noise(800),),
    ),
    Scenario(
        name="video",
        promise="Video becomes a mark like an image.",
        steps=((Call(returns=(MediaBlock(noise(900), "video/mp4"),)),),),
        sees=("[video: mp4, 900 bytes | ref: ",),
        holds=(noise(900),),
    ),
    # Errors.
    Scenario(
        name="error",
        promise="An error stays whatever its size, up to the inline limit: the model needs it to go on.",
        steps=((Call(returns=(BIG,), becomes="kept", is_error=True),),),
        holds=(),
    ),
    Scenario(
        name="huge error",
        promise="An error above the inline limit is offloaded like any result, with its tail in view.",
        steps=((Call(returns=(BIG,), is_error=True),),),
        knobs={"max_inline_tokens": 2_000},
        sees=("line 400 of 400",),
        hides=(MIDDLE,),
        holds=(stored(BIG.text),),
    ),
    Scenario(
        name="errors may leave",
        promise="With offload_errors an error follows its tool's policy.",
        steps=((Call(returns=(BIG,), is_error=True),),),
        knobs={"offload_errors": True},
        hides=(MIDDLE,),
    ),
)
