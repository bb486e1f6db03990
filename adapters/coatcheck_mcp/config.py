"""Read and check ``coatcheck.toml``: settings, policies and servers, for people who do not program.

Only the file belongs here. What a setting means is up to coatcheck; how a server runs is up to the proxy. The proxy,
the hook and ``coatcheck mcp check`` all read the file through ``load``.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from coatcheck import Always, InvalidRequest, Never, OverTokens, Scope, Settings
from coatcheck.adapting import OfferTool, check_scope, is_count, is_offered_late, parse_bytes, parse_seconds
from coatcheck_mcp.names import LONGEST_SERVER, find_clash, split_name
from coatcheck_mcp.tables import Mistake, read_tables, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from coatcheck_mcp.tables import Table

__all__ = (
    "DEFAULT_STORAGE",
    "ENVIRONMENT",
    "KEYS",
    "NO_EFFECT",
    "SERVER_KEYS",
    "START_SECONDS",
    "TOOL_KEYS",
    "VARIABLE",
    "Config",
    "Server",
    "ToolRule",
    "fault_in_header",
    "load",
)

ToolRule: TypeAlias = Always | Never | OverTokens
"""What a table ``[tools."PATTERN"]`` says about results."""

DEFAULT_STORAGE = "~/.coatcheck/mcp"
"""The proxy's own folder: the limits below delete old contents there, and must not reach what people put elsewhere."""

START_SECONDS = 60.0
"""How long a server may take to start: about as long as a person waits, and as a package takes to download. Many
clients give up after that too."""

WEEK = 7 * 86_400.0
TWO_GIGABYTES = 2_000_000_000

KNOBS = (
    "max_result_tokens",
    "preview_tokens",
    "max_retrieval_tokens",
    "max_inline_tokens",
    "max_query_bytes",
    "offload_errors",
    "show_path",
    "list_arguments",
)
"""The fields of ``Settings`` that a file may set. The others do not fit: a counter is Python code, steps need several
calls at once, and threads and queues are for programs that serve many."""

KEYS = (
    "storage",
    "scope",
    "max_age",
    "max_bytes",
    "max_scope_bytes",
    "offer_tool",
    "start_timeout",
    *KNOBS,
    "tools",
    "servers",
)
"""The top-level keys and tables of a file."""

TOOL_KEYS = ("max_result_tokens", "never", "always")
"""The keys of ``[tools."PATTERN"]``."""

SERVER_KEYS = ("command", "args", "env", "cwd", "url", "headers")
"""The keys of ``[servers.NAME]``."""

UNLIMITED = "unlimited"

NO_EFFECT = "has no effect, because the storage is not a folder: run coatcheck sweep for it"
"""What is wrong with a key that limits what is kept if the storage is not a folder."""

_MAX_MISTAKES = 20
"""The most mistakes in one message: as many as fit on a screen. The file is checked again after each."""

_EXAMPLES = {"max_age": "30d", "max_bytes": "2GB", "max_scope_bytes": "100MB", "start_timeout": "90s"}
_QUOTED = re.compile(r"true|false|[0-9_]+")
"""What TOML would read as a boolean or a number without the quotes."""

_SERVER_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{LONGEST_SERVER}}}")
"""A server's name. Its tools' names begin with it, so it has only characters that the protocol allows there. It has no
dot, because in patterns a dot ends it."""

VARIABLE = re.compile(r"\$\{(\w+)\}", re.ASCII)
"""An environment variable in ``env``, ``url`` and ``headers``."""


class _Environment(Mapping[str, str]):
    """The environment of this process. ``help`` prints the ``repr`` of a default, which must not show secrets."""

    def __getitem__(self, name: str) -> str:
        return os.environ[name]

    def __iter__(self) -> Iterator[str]:
        return iter(os.environ)

    def __len__(self) -> int:
        return len(os.environ)

    def __repr__(self) -> str:
        return "os.environ"


ENVIRONMENT = _Environment()


@dataclass(frozen=True, slots=True)
class Server:
    """One server of ``[servers.NAME]``: a program to start, or a URL. ``repr`` shows no secrets."""

    name: str
    """Its tools' names begin with it, as do patterns: ``NAME.TOOL``."""

    _: KW_ONLY

    command: str | None = None
    """The program; None if the server has a URL."""

    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Environment variables of the program, in addition to those that it inherits."""

    cwd: Path | None = None
    """The folder in which the program runs; None: the proxy's own."""

    url: str | None = field(default=None, repr=False)
    """The URL; None if the server is a program."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The configuration of a proxy or a hook: the defaults, and what a file sets instead. ``load`` reads one."""

    path: Path | None = None
    """The file; None: there is none, and these are the defaults."""

    storage: str = DEFAULT_STORAGE
    """A folder, or the URL of a storage. A folder that is relative in the file is absolute here."""

    scope: Scope | None = None
    """Who may read back. None: the proxy chooses, by server and folder."""

    max_age_seconds: float | None = WEEK
    """Contents not used for this long are deleted. None: they stay. For the proxy, see ``stored_in``."""

    max_bytes: int | None = TWO_GIGABYTES
    """The storage's size limit; the oldest contents make room. None: no limit. For the proxy, see ``stored_in``."""

    max_scope_bytes: int | None = None
    """The same limit for each scope."""

    offer_tool: OfferTool = "always"
    """When the model is offered the retrieval tool."""

    start_seconds: float = START_SECONDS
    """How long a server may take to answer its first request."""

    settings: Settings = field(default_factory=Settings)
    """The offloader's settings, without policies: pass what ``rule_of`` returns with each call."""

    tools: Mapping[str, ToolRule] = field(default_factory=dict)
    """The rule of each pattern, in the order of the file."""

    servers: Mapping[str, Server] = field(default_factory=dict)
    """The servers by name."""

    given: frozenset[str] = field(default=frozenset(), compare=False)
    """The keys that the file sets, even if only to the default."""

    def stored_in(self, storage: str | None) -> Config:
        """Return the configuration with ``storage`` in place of the file's; None: nobody named another one.

        The default limits apply only to the proxy's own folder, however that is named. Any other storage may hold what
        others stored, so there only the limits that the file sets apply.
        """
        found = replace(self, storage=self.storage if storage is None else storage)
        if _is_own(found.storage):
            return found
        return replace(
            found,
            max_age_seconds=self.max_age_seconds if "max_age" in self.given else None,
            max_bytes=self.max_bytes if "max_bytes" in self.given else None,
        )

    @property
    def limits_without_effect(self) -> tuple[str, ...]:
        """The keys of the limits that the file sets, if ``storage`` is not a folder: nothing would apply them."""
        if "://" not in self.storage or self.storage.lower().startswith("file:"):
            return ()
        limits = {
            "max_age": self.max_age_seconds,
            "max_bytes": self.max_bytes,
            "max_scope_bytes": self.max_scope_bytes,
        }
        return tuple(key for key, limit in limits.items() if limit is not None and key in self.given)

    def rule_of(self, tool: str, *, server: str | None = None) -> ToolRule | None:
        """Return the rule of a tool; None: ``settings`` decide.

        A pattern is compared with the tool's name and, if ``server`` is given, with ``SERVER.TOOL``. An exact name
        wins, then the longest pattern.
        """
        return self.rule_of_any(self.names_of(tool, server=server))

    def rule_of_shown(self, name: str) -> ToolRule | None:
        """Return the rule of a tool of one of ``servers``, by the name under which clients see it.

        A pattern is compared with that name too.
        """
        return self.rule_of_any(self.names_of_shown(name))

    def names_of(self, tool: str, *, server: str | None = None) -> set[str]:
        """Return the names of a tool that patterns are compared with, as for ``rule_of``."""
        return {tool, tool if server is None else f"{server}.{tool}"}

    def names_of_shown(self, name: str) -> set[str]:
        """Return the names of a tool that patterns are compared with, as for ``rule_of_shown``."""
        server, tool = split_name(name, self.servers) or (None, name)
        return {name, tool, f"{server}.{tool}"}

    def unused_patterns(self, tools: Collection[set[str]]) -> list[str]:
        """Return the patterns that match none of ``tools``, each given by its names."""
        return [pattern for pattern in self.tools if not any(_matches(names, pattern) for names in tools)]

    def rule_of_any(self, names: Collection[str]) -> ToolRule | None:
        """Return the rule of a tool by all the names that it has; None: ``settings`` decide."""
        matching = [pattern for pattern in self.tools if _matches(names, pattern)]
        if not matching:
            return None
        return self.tools[max(matching, key=lambda pattern: (pattern in names, len(pattern)))]


def load(path: str | os.PathLike[str] | None, *, variables: Mapping[str, str] | None = ENVIRONMENT) -> Config:
    """Read and check a file; return the defaults if ``path`` is None.

    Args:
        path: the file.
        variables: the values of ``${NAME}`` in the ``env``, ``url`` and ``headers`` of servers. None: it stays as it
            is, for a caller that starts nothing.

    Raises:
        InvalidRequest: the file cannot be read, or something in it is wrong. The message has a line for each of the
            first 20 mistakes, with its file, line and key, in the order of the file.

    """
    if path is None:
        return Config()
    root = read_tables(_from(Path.cwd(), path))
    mistakes: list[Mistake] = []
    while len(mistakes) < _MAX_MISTAKES:
        try:
            config = _config(root, variables)
        except Mistake as mistake:  # noqa: PERF203 - 20 at most
            mistakes.append(mistake)
            root = root.without(mistake.keys)  # to see what else is wrong
        else:
            break
    if mistakes:
        told = [
            mistake
            for number, mistake in enumerate(mistakes)
            if not any(_comes_of(mistake, before) for before in mistakes[:number])
        ]
        raise InvalidRequest("\n".join(map(str, sorted(told, key=lambda mistake: mistake.line))))
    return config


def _comes_of(mistake: Mistake, before: Mistake) -> bool:
    """Return whether a mistake is about a key whose meaning depends on a key that was rejected earlier."""
    *within, name = before.keys
    is_ours = name in {*KEYS, *TOOL_KEYS, *SERVER_KEYS}
    return (
        is_ours and list(mistake.keys[: len(within)]) == within and re.search(rf"\b{name}\b", mistake.what) is not None
    )


def _config(root: Table, variables: Mapping[str, str] | None) -> Config:
    """Return the configuration that a file holds.

    Raises:
        Mistake: something in it is wrong.

    """
    root.refuse_unknown(KEYS)
    settings = _settings(root)
    rules = {pattern: _rule(table, settings) for pattern, table in root.tables("tools").items()}
    servers = _servers(root, variables)
    return Config(
        path=root.file,
        storage=_storage(root),
        scope=_scope(root),
        max_age_seconds=_limit(root, "max_age", parse_seconds, WEEK),
        max_bytes=_whole(_limit(root, "max_bytes", parse_bytes, TWO_GIGABYTES)),
        max_scope_bytes=_whole(_limit(root, "max_scope_bytes", parse_bytes, None)),
        offer_tool=_offer_tool(root),
        start_seconds=_limit(root, "start_timeout", parse_seconds, START_SECONDS) or math.inf,
        settings=settings,
        tools=MappingProxyType(rules),
        servers=MappingProxyType(servers),
        given=frozenset(root.values),
    )


def _matches(names: Collection[str], pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in names)


def _from(folder: Path, path: str | os.PathLike[str]) -> Path:
    """Make a path in a file absolute: it is relative to the file's folder or, with ``~``, to a user's home."""
    return folder / os.path.expanduser(path)  # noqa: PTH111 - that of Path raises for an unknown ``~user``


def _settings(root: Table) -> Settings:
    given = {key: root.values[key] for key in KNOBS if key in root.values}
    try:
        return Settings(**given)
    except InvalidRequest as error:
        key, _, what = str(error).partition(" ")  # a message of Settings begins with the field
        if key in given:
            what = what.replace("True or False", "true or false")
            root.refuse(key, f"{what}{_unquoted(given[key])}")
        cause = next(name for name in given if name in what)  # ``key`` is at its default, which another field rules out
        root.refuse(cause, f"needs another key next to it: {key} {what}")


def _storage(root: Table) -> str:
    given = root.string("storage")
    if given is None or "://" in given:
        return given or DEFAULT_STORAGE
    if os.path.expanduser(given).startswith("~"):  # noqa: PTH111 - as above; without a home, the storage refuses it
        return given
    return os.fspath(_from(root.file.parent, given))


def _is_own(storage: str) -> bool:
    """Return whether a storage is the proxy's own folder."""
    own, other = (os.path.realpath(os.path.expanduser(each)) for each in (DEFAULT_STORAGE, storage))  # noqa: PTH111 - as above
    return own == other


def _scope(root: Table) -> Scope | None:
    given = root.values.get("scope")
    scope = tuple(given) if isinstance(given, list) else given
    try:
        check_scope(scope)
    except InvalidRequest:
        what = 'must be a string, or an array of 1 to 8 strings such as ["tenant-7", "thread-3"]'
        root.refuse("scope", f"{what}, not {shown(given)}")
    return scope


def _limit(root: Table, key: str, parse: Callable[[str, str], float], default: float | None) -> float | None:
    given = root.values.get(key, default)
    if given is default or given == UNLIMITED:
        return None if given == UNLIMITED else default
    try:
        amount = parse(key, given if isinstance(given, str) else "")
    except InvalidRequest:
        example, units = _EXAMPLES[key], "s, m, h, d or w" if parse is parse_seconds else "KB, MB, GB or TB"
        what = f'must be a number and a unit ({units}) in quotes, such as "{example}", or "{UNLIMITED}"'
        root.refuse(key, f"{what}, not {shown(given)}")
    if not 1 <= amount < math.inf:
        root.refuse(key, f'is out of range: {given!r}; "{UNLIMITED}" is no limit')
    return amount


def _whole(amount: float | None) -> int | None:
    return None if amount is None else int(amount)


def _offer_tool(root: Table) -> OfferTool:
    try:
        return "when needed" if is_offered_late(root.values.get("offer_tool", "always")) else "always"
    except InvalidRequest:
        root.refuse("offer_tool", f'must be "always" or "when needed", not {shown(root.values["offer_tool"])}')


def _unquoted(value: object) -> str:
    """Return advice for a value whose only fault is its quotes; an empty string for any other."""
    return "; write it without the quotes" if isinstance(value, str) and _QUOTED.fullmatch(value) else ""


def _rule(table: Table, settings: Settings) -> ToolRule:
    table.refuse_dots()
    table.refuse_unknown(TOOL_KEYS)
    for key in ("never", "always"):
        if table.values.get(key, True) is not True:
            table.refuse(key, f"must be true, not {shown(table.values[key])}; remove the line if it is not meant")
    if len(table.values) != 1:
        table.refuse(None, f"needs exactly one of {', '.join(TOOL_KEYS)}")
    if "max_result_tokens" not in table.values:
        return Never() if "never" in table.values else Always()
    threshold = table.values["max_result_tokens"]
    if not is_count(threshold, least=1):
        what = f"must be a whole number above 0, not {shown(threshold)}"
        table.refuse("max_result_tokens", f"{what}{_unquoted(threshold)}")
    if threshold > settings.max_inline_tokens:
        most = f"{settings.max_inline_tokens:,}"
        table.refuse(
            "max_result_tokens", f"must be at most max_inline_tokens ({most}), not {threshold:,}; raise that too"
        )
    return OverTokens(threshold)


def fault_in_header(value: str) -> str:
    """Return why a value cannot be sent as a header, or "". Never names the value, which may be a secret."""
    is_sent = value.isascii() and value.isprintable()
    return "" if is_sent else "holds a line end, another control character or a letter that is not ASCII"


def _servers(root: Table, variables: Mapping[str, str] | None) -> dict[str, Server]:
    tables = root.tables("servers")
    clash = find_clash(tables)
    if clash is not None:
        server, other = clash
        tables[server].refuse(
            None, f"needs another name: {other} begins with it, so their tools could not be told apart"
        )
    return {name: _server(name, table, variables) for name, table in tables.items()}


def _filled_in(table: Table, key: str, text: str, *, variables: Mapping[str, str] | None) -> str:
    """Return a value of ``key`` with its variables filled in, unless there are no ``variables``.

    Raises:
        Mistake: a variable is not set; or, in a header, a variable is empty or the value cannot be sent.

    """
    if variables is None:
        return text
    named = VARIABLE.findall(text)
    if missing := [variable for variable in named if variable not in variables]:
        table.refuse(key, f"names the variable {missing[0]}, which is not set; set it where the proxy starts")
    if key != "headers":
        return VARIABLE.sub(lambda found: variables[found[1]], text)
    if blank := [variable for variable in named if not variables[variable].strip()]:
        table.refuse(key, f"names the variable {blank[0]}, which is empty; give it a value where the proxy starts")
    value = VARIABLE.sub(lambda found: variables[found[1]].strip(), text)  # a token from a file may end in a line break
    if fault := fault_in_header(value):
        table.refuse(key, fault)
    return value


def _server(name: str, table: Table, variables: Mapping[str, str] | None) -> Server:
    if _SERVER_NAME.fullmatch(name) is None:
        what = f"needs a name of letters, digits, _ and -, at most {LONGEST_SERVER}: its tools begin with it"
        table.refuse(None, what)
    table.refuse_unknown(SERVER_KEYS)
    if isinstance(table.values.get("command"), list):
        table.refuse("command", "must be the program alone, as a string; the rest goes into args, an array of strings")
    command, url, cwd = table.string("command"), table.string("url"), table.string("cwd")
    if (command is None) == (url is None):
        table.refuse(None, "needs either command, for a program, or url, for an address")
    others = ("args", "env", "cwd") if command is None else ("headers",)
    for key in others:
        if key in table.values:
            table.refuse(key, f"does not go with {'url' if command is None else 'command'}; remove one of them")

    filled = partial(_filled_in, table, variables=variables)
    address = None if url is None else filled("url", url)
    if address is not None and (wrong := _fault_of(address)):
        table.refuse("url", f"{wrong}, not {shown(url)}{'' if address == url else ' with its variables'}")
    return Server(
        name,
        command=command,
        args=table.array("args"),
        env=MappingProxyType({key: filled("env", value) for key, value in table.strings("env").items()}),
        cwd=None if cwd is None else _from(table.file.parent, cwd),
        url=address,
        headers=MappingProxyType({key: filled("headers", value) for key, value in table.strings("headers").items()}),
    )


def _fault_of(address: str) -> str | None:
    """Return which rule a URL breaks; None if it breaks none, or if an unfilled variable hides that."""
    if re.match(r"https?://[^/]", address) is None and VARIABLE.match(address) is None:
        return "must begin with http:// or https:// and a host"
    try:
        is_right = VARIABLE.search(address) is not None or urlsplit(address).port != 0
    except ValueError:
        is_right = False
    return None if is_right else "must be an address whose port, if it has one, is a number up to 65535"
