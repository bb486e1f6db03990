"""Scenarios of reading back: by pattern, lines, field and offset, page after page, and every kind of miss.

To add a scenario, add a value. Each answer is also compared with the core's own, and with the budget.
"""

from __future__ import annotations

import json

from coatcheck.core.blocks import JsonBlock, MediaBlock, TextBlock
from coatcheck.testing.samples import ODD_TEXT, long_line, noise, orders
from coatcheck.testing.scenario import BIG, SCOPE, SCOPE_NAMES, Call, Read, Scenario

__all__ = ("READING_SCENARIOS",)

OFFLOADED = ((Call(returns=(BIG,)),),)
UNKNOWN = "fetch-0123456789abcdef-0123"
TO_THE_END = (Read(to_the_end=True),)

READING_SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        name="read by pattern",
        promise="A pattern finds lines anywhere in the content, with their numbers and the lines around them.",
        steps=OFFLOADED,
        reads=(
            Read(
                arguments={"pattern": "^line 2[05]0 of", "context_lines": 1},
                sees=("2 matches", "> 200| line 200 of 400", "  201| line 201 of 400", "> 250| line 250 of 400"),
                hides=("line 202 of 400",),
            ),
            Read(arguments={"pattern": "no such words"}, sees=("No matches found for pattern 'no such words'",)),
            Read(arguments={"pattern": "fox(", "line_range": "1-9"}, sees=("literal",)),
            Read(arguments={"pattern": "(?=x)"}, sees=("RE2",)),
        ),
    ),
    Scenario(
        name="search many texts",
        promise="One search finds what any of many text blocks holds, and says which one; so does one query.",
        steps=((Call(returns=tuple(TextBlock(json.dumps(order, indent=1)) for order in orders(60))),),),
        reads=(
            Read(arguments={"pattern": '"customer 47"'}, sees=("1 match", "[item 47]|", '"id": 47')),
            Read(
                arguments={"query": "customer", "offset": -20},
                sees=("each item queried by itself, 60 of 60", '60| "customer 60"'),
            ),
            Read(arguments={"line_range": "1-3"}, sees=('"id": 1,',), hides=("[item",)),
        ),
    ),
    Scenario(
        name="read by lines",
        promise="A line range gives those lines, in any of the forms in which models write one.",
        steps=OFFLOADED,
        reads=(
            Read(
                arguments={"line_range": {"start": 150, "end": 152}}, sees=("[Lines 150-152 of 400]", "line 151 of 400")
            ),
            Read(arguments={"line_range": {"start": "399", "end": "9999"}}, sees=("line 400 of 400",)),
            Read(arguments={"line_range": {"start": 500, "end": 501}}, sees=("400 lines",)),
        ),
    ),
    Scenario(
        name="read a field",
        promise="A query selects from JSON, whether it came as a value or as text.",
        steps=(
            (Call(returns=(JsonBlock(orders(500)),)), Call(returns=(TextBlock(json.dumps({"orders": orders(300)})),))),
        ),
        reads=(
            Read(arguments={"query": "[?id==`250`].customer"}, sees=('\n"customer 250"\n',), hides=("customer 251",)),
            Read(arguments={"query": "orders[299].total"}, of=1, sees=("75.0",)),
            Read(arguments={"query": "[?"}, sees=("invalid query",)),
        ),
    ),
    Scenario(
        name="read by offset",
        promise="An offset reads anywhere in a single huge line, and from its end too.",
        steps=((Call(returns=(TextBlock(long_line(300_000)),)),),),
        reads=(
            Read(arguments={"offset": 150_000}, sees=("<150000>",), hides=("<0>", "<299990>")),
            Read(arguments={"offset": "150000"}, sees=("<150000>",)),
            Read(arguments={"offset": -20}, sees=("<299980>", "<299990>", "[End of content]")),
            Read(arguments={"pattern": "<299990>"}, sees=("1 match", "<299990>")),
        ),
    ),
    Scenario(
        name="read page after page",
        promise="Read to the end by the literal next calls, the pages together are the text.",
        steps=OFFLOADED,
        reads=TO_THE_END,
    ),
    Scenario(
        name="read a huge line page after page",
        promise="The same for text without any line end.",
        steps=((Call(returns=(TextBlock(long_line(20_000)),)),),),
        reads=TO_THE_END,
    ),
    Scenario(
        name="read odd characters page after page",
        promise="The same, character for character, for odd line ends and joined characters; lone surrogates apart.",
        steps=((Call(returns=(TextBlock(ODD_TEXT),)),),),
        reads=TO_THE_END,
    ),
    Scenario(
        name="read a field of a text",
        promise="The same where all JSON came as text.",
        steps=((Call(returns=(TextBlock(json.dumps(orders(500))),)),),),
        reads=(
            Read(arguments={"query": "[?id==`250`].customer"}, sees=('\n"customer 250"\n',), hides=("customer 251",)),
            Read(arguments={"query": "[?"}, sees=("invalid query",)),
        ),
    ),
    Scenario(
        name="read JSON in a text page after page",
        promise="The same for JSON that came as text.",
        steps=((Call(returns=(TextBlock(json.dumps(orders(200))),)),),),
        reads=TO_THE_END,
    ),
    Scenario(
        name="read JSON page after page",
        promise="The same for JSON.",
        steps=((Call(returns=(JsonBlock(orders(200)),)),),),
        reads=TO_THE_END,
    ),
    Scenario(
        name="read more than the budget",
        promise="No answer exceeds the budget, and none is offloaded; each names what it omits.",
        steps=OFFLOADED,
        knobs={"max_retrieval_tokens": 300},
        reads=(
            Read(arguments={"pattern": "line"}, sees=("400 matches", "[More: ")),
            Read(arguments={"line_range": {"start": 1, "end": 400}}, sees=("line 1 of 400", "[More: ")),
            Read(arguments={"pattern": "fox", "context_lines": 100}, sees=("[More: ",)),
            Read(sees=("line 1 of 400", "[More: ")),
        ),
        holds=(BIG.text.encode(),),
    ),
    Scenario(
        name="read media",
        promise="Content that is not text is described, and a pattern on it is refused.",
        steps=((Call(returns=(MediaBlock(noise(1_000), "image/png"),)),),),
        reads=(
            Read(sees=("image/png", "1,000 bytes")),
            Read(arguments={"pattern": "x"}, sees=("cannot search binary content (image/png)",)),
        ),
    ),
    Scenario(
        name="reference as models write it",
        promise="Quotes, spaces and upper case around a reference do no harm.",
        steps=OFFLOADED,
        reads=(
            Read(reference=" `{}` ", arguments={"line_range": {"start": 7, "end": 7}}, sees=("line 7 of 400",)),
            Read(reference='"{}"', arguments={"line_range": {"start": 8, "end": 8}}, sees=("line 8 of 400",)),
        ),
    ),
    Scenario(
        name="unknown reference",
        promise="A reference that never was is a miss that tells the model not to try again.",
        steps=OFFLOADED,
        reads=(
            Read(reference=UNKNOWN, sees=(f"reference not found: {UNKNOWN}", "Do not retry")),
            Read(reference="../../etc/passwd", sees=("reference not found: ../../etc/passwd",), hides=("root:",)),
            Read(reference="x" * 1_000, sees=("1,000 characters",)),
        ),
    ),
    Scenario(
        name="failure to read",
        promise="An answer that says what went wrong is an error for the framework; an answer with content, or without"
        " a match, is not.",
        steps=OFFLOADED,
        marks_failures=True,
        reads=(
            Read(arguments={"pattern": "^line 250 "}, sees=("> 250| line 250 of 400",)),
            Read(arguments={"pattern": "no such words"}, sees=("No matches found",)),
            Read(arguments={"pattern": "(?=x)"}, sees=("RE2",)),
            Read(reference=UNKNOWN, sees=("reference not found",)),
        ),
    ),
    Scenario(
        name="reference from another scope",
        promise="Another conversation's reference answers exactly like an unknown one, whatever scope the model names.",
        steps=OFFLOADED,
        between="another scope",
        reads=(
            Read(sees=("reference not found", "Do not retry"), hides=("line 1 of 400", "expired")),
            *(Read(undefined={name: SCOPE}, hides=("line 1 of 400",)) for name in SCOPE_NAMES),
        ),
    ),
    Scenario(
        name="expired reference",
        promise="A reference to deleted content says so, and which call to repeat.",
        steps=OFFLOADED,
        between="deletion",
        reads=(Read(sees=("reference expired", "Do not retry", "call again"), hides=("not found",)),),
    ),
    Scenario(
        name="restart",
        promise="A new offloader on the same storage reads what an earlier one stored.",
        steps=OFFLOADED,
        between="restart",
        reads=(Read(arguments={"pattern": "^line 321 "}, sees=("> 321| line 321 of 400",)),),
    ),
    Scenario(
        name="storage fails on read",
        promise="A storage that cannot read becomes a message for the model, without paths or the backend's words.",
        steps=OFFLOADED,
        fault="every load",
        reads=(Read(sees=("cannot be read now",), hides=("Input/output error", "OSError")),),
    ),
)
