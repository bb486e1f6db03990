"""One client's sessions with several servers, as if they were one server.

Lists are joined; a tool or a prompt has its server's name before its own; a request goes to the one server that it is
for. What a server asks or tells comes through its own session. If a server is missing, only what it offers is missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

from coatcheck_mcp.client import ANY_CAPABILITIES, LIST_CHANGES
from coatcheck_mcp.hook import logger
from coatcheck_mcp.link import Link, SessionForgotten
from coatcheck_mcp.names import LONGEST_TOOL, full_name, shown_name, split_name
from coatcheck_mcp.starting import Starting

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

    from anyio.abc import TaskGroup, TaskStatus

    from coatcheck_mcp.client import Client, Context
    from coatcheck_mcp.transports import Upstream

__all__ = ("Several",)

WAIT_SECONDS = 20.0
"""How long the other servers wait for one that is starting. Clients give a server half a minute or more to answer."""

LIST_SECONDS = 20.0
"""How long a list, or any other request to all servers, waits for a server that is up."""

AnswerT = TypeVar("AnswerT")

_MAX_LINKED = 10_000
"""The most resources that are remembered from links in results, per client."""

_LISTS: Mapping[str, tuple[str, str]] = {
    "tools/list": ("tools", "tools"),
    "prompts/list": ("prompts", "prompts"),
    "resources/list": ("resources", "resources"),
    "resources/templates/list": ("resources", "resourceTemplates"),
}
"""The capability of each list, and the key of its result."""


@dataclass(eq=False)
class _Member(Starting[Link]):
    """One server, and its session if it has one."""

    name: str
    upstream: Upstream
    tried: anyio.Event = field(default_factory=anyio.Event)


class Several:
    """The sessions of one client with all servers. It does what ``Link`` does for one."""

    server_name = "coatcheck"
    """The references of all servers are in one scope, since one tool reads them back."""

    def __init__(self, upstreams: Mapping[str, Upstream], client: Client) -> None:
        """Prepare to connect.

        Args:
            upstreams: the servers by name.
            client: whom the sessions are for.

        """
        self._client = client
        self._members = {name: _Member(name, upstream) for name, upstream in upstreams.items()}
        self._tasks: TaskGroup | None = None
        self._is_up = False
        self._closed = anyio.Event()
        self._ended = anyio.Event()
        self._owners: dict[str, dict[str, str]] = {}
        """The server of each resource and of each template, by the list that names it."""

        self._owners_as_of: object = None
        self._cut: dict[str, tuple[_Member, str]] = {}
        """The tools whose names are too long, by the names that clients see."""

        self._linked: dict[str, str] = {}
        self._names: list[str] | None = None

    # The connections.

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Hold the connections open until ``close``. Servers that take long to start come later."""
        try:
            async with anyio.create_task_group() as self._tasks:
                for member in self._members.values():
                    self._tasks.start_soon(self._start, member)
                with anyio.move_on_after(WAIT_SECONDS):
                    for member in self._members.values():
                        await member.tried.wait()
                self._is_up = True
                task_status.started()
                await self._closed.wait()  # with no server up, the group would end, and none could be started again
        finally:
            self._ended.set()

    def close(self) -> None:
        """End all connections; ``run`` returns once the processes are gone."""
        self._closed.set()
        for member in self._members.values():
            if member.link is not None:
                member.link.close()

    async def aclose(self) -> None:
        """End all connections, and wait until the processes are gone."""
        self.close()
        await self._ended.wait()

    @property
    def closed(self) -> bool:
        """Whether everything has ended, or is about to. Servers that ended are started again one by one."""
        return self._closed.is_set()

    async def _start(self, member: _Member) -> None:
        try:
            await self._link(member)
        except MCPError:  # the session has logged why
            words = "the MCP server %s is missing from all lists until a call of its tools starts it"
            logger.warning(words, member.name)
        finally:
            member.tried.set()

    async def _link(self, member: _Member) -> Link:
        """Return the session with a server; connect if there is none, or if it was lost.

        Raises:
            MCPError: the server did not start.

        """
        return await member.connected(partial(self._connect, member))

    async def _connect(self, member: _Member) -> Link:
        before = member.link
        if self._tasks is None or self.closed:
            raise MCPError(code=types.CONNECTION_CLOSED, message="coatcheck is about to end")
        link = member.link = Link(member.upstream, self._client, label=member.name)
        await self._tasks.start(link.run)
        if self._is_up and not (before is not None and before.was_up):
            for capability, message in LIST_CHANGES.items():
                if link.has(capability):
                    await self._client.tell(message())
        return link

    def _up(self) -> dict[str, Link]:
        """Return the sessions with servers that have started, even if they ended since."""
        links = {name: member.link for name, member in self._members.items()}
        return {name: link for name, link in links.items() if link is not None and link.was_up}

    # What the client is told of them.

    def describe(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to ``initialize`` or ``server/discover``: what any server has, under our own name."""
        up = {name: link for name, link in self._up().items() if not link.closed}
        capabilities: dict[str, Any] = {"tools": {}}
        for link in up.values():
            _join(capabilities, link.capabilities())
        if len(up) < len(self._members):
            _join(capabilities, ANY_CAPABILITIES)
        for name in LIST_CHANGES.keys() & capabilities.keys():
            capabilities[name]["listChanged"] = True  # a server may come later
        said = [f"# {name}\n\n{link.instructions}" for name, link in up.items() if link.instructions]
        return {**answer, "capabilities": capabilities, **({"instructions": "\n\n".join(said)} if said else {})}

    def suits(self, version: str) -> bool:
        """Return whether a client with this protocol version understands all that the servers may say."""
        return all(link.suits(version) for link in self._up().values())

    async def list_tools(self, _: Context) -> dict[str, Any]:
        """Return the tools of all servers that are up, on one page."""
        return {"tools": await self._shown_tools()}

    async def _shown_tools(self) -> list[dict[str, Any]]:
        listed = await self._list("tools/list")
        shown = [{**tool, "name": shown_name(server, tool["name"])} for server, tool in listed]
        self._cut = {
            tool["name"]: (self._members[server], own["name"])
            for tool, (server, own) in zip(shown, listed, strict=True)
            if tool["name"] != full_name(server, own["name"])
        }
        self._names = [full_name(server, own["name"]) for server, own in listed] if self._is_whole(listed) else None
        return shown

    def _is_whole(self, listed: Collection[tuple[str, Mapping[str, Any]]]) -> bool:
        """Return whether a list of tools covers every server that has tools."""
        bare = {name for name, link in self._up().items() if not link.closed and not link.has("tools")}
        return self._members.keys() == bare | {name for name, _ in listed}

    def full_name(self, shown: str) -> str:
        """Return the full name of a tool, given the name that clients see, which may be cut."""
        member, own = self._cut.get(shown, (None, shown))
        return full_name(member.name, own) if member is not None else shown

    async def tool_meta(self, name: str) -> Mapping[str, Any]:
        """Return the ``_meta`` of a tool's definition.

        Raises:
            MCPError: no server has such a tool, or it did not start.

        """
        if len(name) == LONGEST_TOOL and name not in self._cut:
            await self._shown_tools()  # the client has the name from an earlier list, or from another proxy
        member, own = self._find(name)
        return await (await self._link(member)).tool_meta(own)

    async def taken_names(self) -> Collection[str]:
        """Return the names that the retrieval tool cannot have: none, since no server's name begins it."""
        return ()

    async def all_names(self) -> Collection[str] | None:
        """Return the full names of all tools as of the latest list; None if a server was missing there."""
        return self._names

    async def _list(self, method: str) -> list[tuple[str, Mapping[str, Any]]]:
        """Return what the servers that are up list, each item with its server's name, in the order of the servers."""

        async def ask(member: _Member) -> Collection[Mapping[str, Any]]:
            try:
                return await self._list_one(member, method)
            except MCPError as error:
                logger.warning("%s of the MCP server %s failed: %s", method, member.name, error)
                return ()

        found = await self._at_once(self._up(), method, ask)
        listed = {name: items for name, items in found.items() if not isinstance(items, MCPError)}
        return [(name, item) for name in self._members for item in listed.get(name, ())]

    async def _at_once(
        self,
        names: Iterable[str],
        method: str,
        ask: Callable[[_Member], Awaitable[AnswerT]],
        *,
        is_enough: Callable[[Mapping[str, AnswerT | MCPError]], bool] = lambda _: False,
    ) -> dict[str, AnswerT | MCPError]:
        """Ask servers concurrently, so that a silent one holds up no other, and return the answer of each.

        Args:
            names: the servers.
            method: what they are asked.
            ask: asks one server. Its answer is an error if it refuses, or takes more than ``LIST_SECONDS``.
            is_enough: returns whether the answers so far will do.

        """
        answers: dict[str, AnswerT | MCPError] = {}

        async def ask_one(name: str) -> None:
            with anyio.move_on_after(LIST_SECONDS) as limit:
                try:
                    answers[name] = await ask(self._members[name])
                except MCPError as error:
                    answers[name] = error
            if limit.cancelled_caught:
                msg = f"the MCP server {name} did not answer {method} within {LIST_SECONDS:g} seconds"
                logger.warning(msg)
                answers[name] = MCPError(code=types.INTERNAL_ERROR, message=msg)
            if is_enough(answers):
                tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(ask_one, name)
        return answers

    async def _list_one(self, member: _Member, method: str, *, again: bool = True) -> Collection[Mapping[str, Any]]:
        capability, key = _LISTS[method]
        link = await self._link(member)
        try:
            if not link.has(capability):
                return ()
            return (await link.tools(anew=True)).values() if key == "tools" else await link.list_all(method, key)
        except MCPError:
            if not (link.closed and again):
                raise
        # The server had ended, which only a request shows. Now it is started again.
        return await self._list_one(member, method, again=False)

    # What the client asks.

    async def forward(self, ctx: Context) -> dict[str, Any]:
        """Forward a client's request to the one server that it is for, or to all.

        Raises:
            MCPError: the server's own error; or the server is not there, or nobody knows which one is meant.

        """
        params = dict(ctx.params or {})
        match ctx.method:
            case "ping":
                return {}
            case "logging/setLevel":
                return await self._forward_to_all(ctx)
            case "tools/call" | "prompts/get":
                return await self._forward_named(ctx, params)
            case "completion/complete":
                return await self._complete(ctx, params)
            case method if method in _LISTS:
                return await self._joined(method)
            case _:
                return await self._forward_to_owner(ctx, params.get("uri"), "resources")

    async def notify(self, notification: types.ClientNotification) -> None:
        """Send a notification of the client to all servers."""
        up = self._up()
        await self._at_once(up, notification.method, lambda member: up[member.name].notify(notification))

    async def subscribe(self, uris: Collection[str]) -> None:
        """Ask the servers to report changes of these resources."""
        owners = {uri: await self._owner_of(uri) for uri in uris}
        async with anyio.create_task_group() as tasks:
            for uri, owner in owners.items():
                tasks.start_soon(self._subscribe, uri, self._members if owner is None else [owner])

    async def unsubscribe(self, uris: Collection[str]) -> None:
        """Ask servers to stop reporting changes of these resources, except those that a client's stream is about."""
        links = {name: member.link for name, member in self._members.items() if member.link is not None}
        await self._at_once(links, "resources/unsubscribe", lambda member: links[member.name].unsubscribe(uris))

    async def _subscribe(self, uri: str, names: Collection[str]) -> None:
        async def ask(member: _Member) -> None:
            await (await self._link(member)).subscribe([uri])

        answers = await self._at_once(names, "resources/subscribe", ask)
        refused = [answer for answer in answers.values() if isinstance(answer, MCPError)]
        if len(refused) == len(names):
            logger.warning("changes of the resource %s will not be reported: %s", uri, refused[-1])

    def _find(self, shown: object) -> tuple[_Member, str]:
        """Return the server that a name belongs to, and the name that it has there.

        Raises:
            MCPError: it begins with no server's name.

        """
        if isinstance(shown, str) and shown in self._cut:
            return self._cut[shown]
        found = split_name(shown, self._members)
        if found is None:
            msg = f"no server has {shown!r}: names begin with the server's, as in {next(iter(self._members))}_..., and"
            msg = f"{msg} the servers behind coatcheck are {', '.join(self._members)}"
            raise MCPError(code=types.INVALID_PARAMS, message=msg)
        return self._members[found[0]], found[1]

    async def _forward_named(self, ctx: Context, params: Mapping[str, Any]) -> dict[str, Any]:
        member, own = self._find(params.get("name"))
        result = await (await self._link(member)).forward(ctx, {**params, "name": own})
        parts = [part for part in result.get("content") or () if isinstance(part, dict)]
        for uri in (part.get("uri") for part in parts if part.get("type") == "resource_link"):
            if isinstance(uri, str) and len(self._linked) < _MAX_LINKED:
                self._linked.setdefault(uri, member.name)
        return result

    async def _complete(self, ctx: Context, params: Mapping[str, Any]) -> dict[str, Any]:
        about = params.get("ref") or {}
        if "name" not in about:
            return await self._forward_to_owner(ctx, about.get("uri"), "completions")
        member, own = self._find(about["name"])
        return await (await self._link(member)).forward(ctx, {**params, "ref": {**about, "name": own}})

    async def _forward_to_all(self, ctx: Context) -> dict[str, Any]:
        up = self._up()
        await self._at_once(up, ctx.method, lambda member: up[member.name].forward(ctx))  # not every server has it
        return {}

    async def _joined(self, method: str) -> dict[str, Any]:
        _, key = _LISTS[method]
        listed = await self._list(method)
        if key == "prompts":
            return {key: [{**prompt, "name": full_name(server, prompt["name"])} for server, prompt in listed]}
        name = "uri" if key == "resources" else "uriTemplate"
        self._owners[key] = {item[name]: server for server, item in reversed(listed)}  # the first counts
        return {key: [item for _, item in listed]}

    async def _forward_to_owner(self, ctx: Context, uri: object, capability: str) -> dict[str, Any]:
        """Forward a request about a resource to its server, or to all servers if it is not known which."""
        owner = await self._owner_of(uri)
        if owner is not None:
            return await (await self._link(self._members[owner])).forward(ctx)

        async def ask(member: _Member) -> dict[str, Any] | None:
            link = await self._link(member)
            return await link.forward(ctx) if link.has(capability) else None

        names = list(self._up())
        is_read = ctx.method not in {"resources/subscribe", "resources/unsubscribe"}  # those go to all that know it
        answers = await self._at_once(
            names, ctx.method, ask, is_enough=lambda answers: is_read and _first(names, answers) is not None
        )
        answer = _first(names, answers)
        if answer is None:
            nobody = MCPError(code=types.INVALID_PARAMS, message=f"no server behind coatcheck has {uri!r}")
            raise [nobody, *(said for name in names if isinstance(said := answers.get(name), MCPError))][-1]
        if isinstance(answer, SessionForgotten):
            raise answer
        return answer

    async def _owner_of(self, uri: object) -> str | None:
        """Return the server that lists a resource, has a template for it, or linked to it in a result; else None."""
        if not isinstance(uri, str):
            return None
        as_of = [(link, link.resource_changes) for link in self._up().values()]
        if as_of != self._owners_as_of:  # the client may never have asked for the lists
            async with anyio.create_task_group() as tasks:
                for method in ("resources/list", "resources/templates/list"):
                    tasks.start_soon(self._joined, method)
            self._owners_as_of = as_of
        listed, templates = self._owners["resources"], self._owners["resourceTemplates"]
        if uri in listed:
            return listed[uri]
        if uri in templates:  # as completion names it; its braces may match another server's template
            return templates[uri]
        found = (server for template, server in reversed(templates.items()) if _matches(template, uri))
        return next(found, self._linked.get(uri))


def _first(
    names: Iterable[str], answers: Mapping[str, dict[str, Any] | MCPError | None]
) -> dict[str, Any] | SessionForgotten | None:
    """Return the first answer that is not a refusal, or that must be asked for again; None: not known yet, or none.

    That is the first in the order of the file, not the fastest: people put the server that they trust first.
    """
    for name in names:
        if name not in answers:
            return None
        answer = answers[name]
        if answer is not None and (isinstance(answer, SessionForgotten) or not isinstance(answer, MCPError)):
            return answer
    return None


def _matches(template: str, uri: str) -> bool:
    try:
        return UriTemplate.is_template(template) and UriTemplate.parse(template).match(uri) is not None
    except InvalidUriTemplate:
        return False


def _join(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Add another server's capabilities to these. Of values that cannot be joined, the first server's counts."""
    for name, value in more.items():
        if isinstance(value, dict) and isinstance(into.setdefault(name, {}), dict):
            _join(into[name], value)
        else:
            into[name] = into.get(name) or value
