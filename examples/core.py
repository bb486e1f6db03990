# /// script
# requires-python = ">=3.10"
# dependencies = ["coatcheck"]
#
# [tool.uv.sources]
# coatcheck = { path = ".." }  # not on the package index yet: this checkout
# ///
"""The core by itself, without a framework: offload a tool result, and read parts of it back.

python examples/core.py
"""

import tempfile

from coatcheck import FileStorage, Offloaded, Offloader, TextBlock

lines = [f"12:{number % 60:02} INFO ok job={number}" for number in range(20_000)]
lines[7_777] = "12:37 ERROR disk full job=7777"
log = "\n".join(lines)

with tempfile.TemporaryDirectory() as folder:
    offloader = Offloader(FileStorage(folder))

    outcome = offloader.offload([TextBlock(log)], tool_name="read_log", scope="conversation-1")
    assert isinstance(outcome, Offloaded)
    print(outcome.text[:600], "\n...\n")

    reference = str(outcome.references[0])
    print(offloader.retrieve(reference, scope="conversation-1", pattern="ERROR", context_lines=1).text, "\n")
    print(offloader.retrieve(reference, scope="conversation-1", line_range="7770-7772").text)

    assert offloader.load(reference, scope="conversation-1").text == log
