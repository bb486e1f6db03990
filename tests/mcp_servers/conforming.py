"""A server with everything that the protocol's conformance tool asks for, under the names that the tool expects."""

# ruff: noqa: ANN401 - what the library passes is of any type

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.shared.message import ServerMessageMetadata

if TYPE_CHECKING:
    from mcp.server import ServerRequestContext

    Context = ServerRequestContext[Any, Any]

__all__ = ("conforming_server",)

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(60)).decode()
WAV = base64.b64encode(b"RIFF" + bytes(60)).decode()


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def resource(uri: str, media_type: str, said: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": media_type, "text": said}}


IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}

RESULTS: dict[str, dict[str, Any]] = {
    "test_simple_text": {"content": [text("This is a simple text response for testing.")]},
    "test_image_content": {"content": [IMAGE]},
    "test_audio_content": {"content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]},
    "test_embedded_resource": {
        "content": [resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")]
    },
    "test_multiple_content_types": {
        "content": [
            text("Multiple content types test:"),
            IMAGE,
            resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
        ]
    },
    "test_error_handling": {
        "content": [text("This tool intentionally returns an error for testing")],
        "isError": True,
    },
}

STRING = {"type": "string"}
SCHEMAS: dict[str, dict[str, Any]] = {
    "test_sampling": {"type": "object", "properties": {"prompt": STRING}, "required": ["prompt"]},
    "test_elicitation": {"type": "object", "properties": {"message": STRING}, "required": ["message"]},
    "json_schema_2020_12_tool": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"type": "object", "properties": {"street": STRING, "city": STRING}}},
        "properties": {"name": STRING, "address": {"$ref": "#/$defs/address"}},
        "additionalProperties": False,
    },
}

TITLES = [{"const": f"value{number}", "title": f"Option {number}"} for number in (1, 2, 3)]
OPTIONS = ["option1", "option2", "option3"]
FORMS: dict[str, dict[str, Any]] = {
    "test_elicitation": {"username": STRING, "email": STRING},
    "test_elicitation_sep1034_defaults": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
    "test_elicitation_sep1330_enums": {
        "untitledSingle": {"type": "string", "enum": OPTIONS},
        "titledSingle": {"type": "string", "oneOf": TITLES},
        "legacyEnum": {"type": "string", "enum": OPTIONS, "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLES}},
    },
}

RESOURCES = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "watched"},
}

PROMPTS: dict[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
}


async def log(ctx: Context, _: Any) -> str:
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        params = types.LoggingMessageNotificationParams(level="info", data=said)
        await ctx.session.send_notification(types.LoggingMessageNotification(params=params), ctx.request_id)
        await anyio.sleep(0.05)
    return "logged"


async def progress(ctx: Context, _: Any) -> str:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100)
        await anyio.sleep(0.05)
    return "done"


async def sample(ctx: Context, arguments: dict[str, Any]) -> str:
    asked = types.SamplingMessage(role="user", content=types.TextContent(text=arguments["prompt"]))
    request = types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[asked], max_tokens=100))
    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    found = await ctx.session.send_request(request, types.CreateMessageResult, metadata=related)
    return f"LLM response: {found.model_dump_json()}"


async def elicit(ctx: Context, name: str, arguments: dict[str, Any]) -> str:
    schema = {"type": "object", "properties": FORMS[name], "required": list(FORMS[name])[:1]}
    found = await ctx.session.elicit_form(arguments.get("message", "?"), schema, ctx.request_id)
    return f"Elicitation completed: action={found.action}, content={json.dumps(found.content)}"


ACTIONS = {"test_tool_with_logging": log, "test_tool_with_progress": progress, "test_sampling": sample}


async def list_tools(*_: Any) -> Any:
    names = [*RESULTS, *ACTIONS, *FORMS, "json_schema_2020_12_tool"]
    empty = {"type": "object", "properties": {}}
    return {
        "tools": [
            {"name": name, "description": f"For {name}.", "inputSchema": SCHEMAS.get(name, empty)} for name in names
        ]
    }


async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> Any:
    name, arguments = params.name, params.arguments or {}
    if name in FORMS:
        return {"content": [text(await elicit(ctx, name, arguments))]}
    if name in ACTIONS:
        return {"content": [text(await ACTIONS[name](ctx, arguments))]}
    return RESULTS.get(name, {"content": [text("?")]})


async def list_resources(*_: Any) -> Any:
    listed = [
        {"uri": uri, "name": uri, "description": f"For {uri}.", "mimeType": content["mimeType"]}
        for uri, content in RESOURCES.items()
    ]
    return {"resources": listed}


async def list_templates(*_: Any) -> Any:
    template = {"uriTemplate": "test://template/{id}/data", "name": "template", "description": "A template."}
    return {"resourceTemplates": [template]}


async def read(_: Any, params: types.ReadResourceRequestParams) -> Any:
    uri = str(params.uri)
    found = RESOURCES.get(uri)
    if found is None:
        said = {"id": uri.split("/")[3], "templateTest": True, "data": f"Data for ID: {uri.split('/')[3]}"}
        found = {"mimeType": "application/json", "text": json.dumps(said)}
    return {"contents": [{"uri": uri, **found}]}


async def list_prompts(*_: Any) -> Any:
    return {
        "prompts": [
            {
                "name": name,
                "description": f"For {name}.",
                "arguments": [{"name": each, "required": True} for each in arguments],
            }
            for name, arguments in PROMPTS.items()
        ]
    }


async def prompt(_: Any, params: types.GetPromptRequestParams) -> Any:
    given = params.arguments or {}
    contents: dict[str, list[dict[str, Any]]] = {
        "test_simple_prompt": [text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments": [
            text(f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'")
        ],
        "test_prompt_with_embedded_resource": [
            resource(given.get("resourceUri", ""), "text/plain", "Embedded resource content for testing."),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image": [IMAGE, text("Please analyze the image above.")],
    }
    return {"messages": [{"role": "user", "content": content} for content in contents[params.name]]}


async def complete(*_: Any) -> Any:
    return {"completion": {"values": ["paris", "park", "party"], "total": 150, "hasMore": False}}


async def accept(*_: Any) -> Any:
    return {}


def conforming_server() -> Server[Any]:
    """Return the server."""
    server: Server[Any] = Server("conforming", version="1")
    handlers: tuple[tuple[str, type[types.RequestParams], Any], ...] = (
        ("tools/list", types.PaginatedRequestParams, list_tools),
        ("tools/call", types.CallToolRequestParams, call_tool),
        ("resources/list", types.PaginatedRequestParams, list_resources),
        ("resources/templates/list", types.PaginatedRequestParams, list_templates),
        ("resources/read", types.ReadResourceRequestParams, read),
        ("resources/subscribe", types.SubscribeRequestParams, accept),
        ("resources/unsubscribe", types.UnsubscribeRequestParams, accept),
        ("prompts/list", types.PaginatedRequestParams, list_prompts),
        ("prompts/get", types.GetPromptRequestParams, prompt),
        ("completion/complete", types.CompleteRequestParams, complete),
        ("logging/setLevel", types.SetLevelRequestParams, accept),
    )
    for method, params, handler in handlers:
        server.add_request_handler(method, params, handler)
    return server
