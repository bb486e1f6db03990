"""``coatcheck.toml``: what each key means, and that every mistake is named with its file, line and key."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import Always, InvalidRequest, Never, OverTokens, Settings
from coatcheck_mcp.config import KEYS, SERVER_KEYS, TOOL_KEYS, Config, Server, load
from coatcheck_mcp.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that writes a ``coatcheck.toml``."""

    def write_file(text: str) -> Path:
        file = tmp_path / "coatcheck.toml"
        file.write_bytes(text.encode())
        return file

    return write_file


def refused(file: Path, **options: dict[str, str]) -> str:
    """Return why a file is refused, without the path of its folder."""
    with pytest.raises(InvalidRequest) as error:
        load(file, **options)
    return str(error.value).replace(f"{file.parent}{os.sep}", "")


WHOLE = """\
# Everything at once.
storage = "kept"
scope = ["team-7", "laptop"]
max_age = "30d"
max_bytes = "1.5 GB"
max_scope_bytes = "unlimited"
offer_tool = "when needed"
start_timeout = "5m"
max_result_tokens = 4000
preview_tokens = 0
max_retrieval_tokens = 3000
max_inline_tokens = 60_000
max_query_bytes = 1000
offload_errors = true
show_path = true
list_arguments = true

[tools."github.*"]
max_result_tokens = 5000

[tools.search]
never = true

[tools.'shot?']
always = true

[servers.github]
command = "npx"
args = [
    "-y",   # one on each line
    "server",
]
cwd = "work"
env = { TOKEN = "${SECRET}", PLAIN = "$5" }

[servers.far]
url = "https://${HOST}/mcp"
headers.Authorization = "Bearer ${SECRET}"
"""


def test_every_key_is_read(write: Callable[[str], Path]) -> None:
    file = write(WHOLE)

    assert load(file, variables={"SECRET": "s3cret", "HOST": "example.org"}) == Config(
        path=file,
        storage=os.fspath(file.parent / "kept"),
        scope=("team-7", "laptop"),
        max_age_seconds=30 * 86_400,
        max_bytes=1_500_000_000,
        max_scope_bytes=None,
        offer_tool="when needed",
        start_seconds=300,
        settings=Settings(
            max_result_tokens=4_000,
            preview_tokens=0,
            max_retrieval_tokens=3_000,
            max_inline_tokens=60_000,
            max_query_bytes=1_000,
            offload_errors=True,
            show_path=True,
            list_arguments=True,
        ),
        tools={"github.*": OverTokens(5_000), "search": Never(), "shot?": Always()},
        servers={
            "github": Server(
                "github",
                command="npx",
                args=("-y", "server"),
                cwd=file.parent / "work",
                env={"TOKEN": "s3cret", "PLAIN": "$5"},
            ),
            "far": Server("far", url="https://example.org/mcp", headers={"Authorization": "Bearer s3cret"}),
        },
    )
    assert all(f"\n{key} = " in WHOLE for key in KEYS[:-2])
    assert all(f"{key} = " in WHOLE for key in (*TOOL_KEYS, *SERVER_KEYS) if key != "headers")


ADDRESS = '[servers.far]\nurl = "${FAR}"\n'


@pytest.mark.parametrize("far", ["http://h/mcp", "https://h:8080/mcp?key=s3cret"])
def test_a_whole_url_may_be_a_variable(write: Callable[[str], Path], far: str) -> None:
    file = write(ADDRESS)

    assert load(file, variables={"FAR": far}).servers["far"].url == far
    assert load(file, variables=None).servers["far"].url == "${FAR}"


@pytest.mark.parametrize("far", ["", "h/mcp?key=s3cret", "http://h:port/?key=s3cret"])
def test_a_wrong_url_from_a_variable_is_refused_without_its_value(write: Callable[[str], Path], far: str) -> None:
    file = write(ADDRESS)

    with pytest.raises(
        InvalidRequest, match=r":2: servers\.far\.url must .*, not '\$\{FAR\}' with its variables$"
    ) as refused:
        load(file, variables={"FAR": far})
    assert "s3cret" not in str(refused.value)


def test_all_mistakes_are_reported_in_order_but_not_their_consequences(write: Callable[[str], Path]) -> None:
    file = write("""\
max_result_tokens = "4000"
preview_tokens = -1
max_inline_tokens = "60000"
colour = 1
max_age = 30
[tools.github.search]
never = true
[tools.y]
max_result_tokens = 55000  # right, if max_inline_tokens were
[servers.a]
command = ["npx"]
[servers.b]
url = "ftp:/x"
env = {}
[servers.c]
""")
    assert [line.split(" ")[:2] for line in refused(file).split("\n")] == [
        ["coatcheck.toml:1:", "max_result_tokens"],
        ["coatcheck.toml:2:", "preview_tokens"],
        ["coatcheck.toml:3:", "max_inline_tokens"],
        ["coatcheck.toml:4:", "colour"],
        ["coatcheck.toml:5:", "max_age"],
        ["coatcheck.toml:6:", "tools.github.search"],
        ["coatcheck.toml:11:", "servers.a.command"],
        ["coatcheck.toml:13:", "servers.b.url"],
        ["coatcheck.toml:14:", "servers.b.env"],
        ["coatcheck.toml:15:", "[servers.c]"],
    ]


def test_no_more_mistakes_are_reported_than_fit_on_a_screen(write: Callable[[str], Path]) -> None:
    file = write("".join(f"key{number} = 1\n" for number in range(1_000)))
    assert len(refused(file).split("\n")) == 20


def test_without_a_file_the_defaults_apply() -> None:
    assert load(None) == Config()
    assert Config().settings == Settings()
    assert (Config().max_age_seconds, Config().max_bytes) == (7 * 86_400, 2_000_000_000)


@pytest.mark.parametrize("named", ["~/.coatcheck/mcp", "~/.coatcheck//mcp/", None])
def test_the_default_limits_apply_in_the_proxys_own_folder_however_it_is_named(
    write: Callable[[str], Path], named: str | None
) -> None:
    for config in (Config(), load(write("max_result_tokens = 4000"))):
        found = config.stored_in(named and str(Path(named).expanduser()))

        assert (found.max_age_seconds, found.max_bytes) == (7 * 86_400, 2_000_000_000)


def test_the_proxys_own_folder_is_recognised_through_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", os.fspath(tmp_path))
    link = tmp_path / "link"
    link.symlink_to(tmp_path / ".coatcheck" / "mcp")

    assert Config().stored_in(os.fspath(link)).max_bytes == 2_000_000_000


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "elsewhere"),
        ("", "s3://bucket/mcp"),
        ('storage = "kept"', None),
        ('storage = "~/.coatcheck/mcp"', "elsewhere"),
    ],
)
def test_in_any_other_folder_only_the_limits_in_the_file_apply(
    write: Callable[[str], Path], text: str, named: str | None
) -> None:
    file = write(f'{text}\nmax_scope_bytes = "1MB"\n')

    found = load(file).stored_in(named)
    assert found.storage == (named or os.fspath(file.parent / "kept"))
    assert (found.max_age_seconds, found.max_bytes, found.max_scope_bytes) == (None, None, 1_000_000)
    found = load(write(f'{text}\nmax_age = "7d"\nmax_bytes = "1GB"\n')).stored_in(named)
    assert (found.max_age_seconds, found.max_bytes) == (7 * 86_400, 10**9)


def test_an_empty_file_gives_the_defaults_too(write: Callable[[str], Path]) -> None:
    file = write("")

    assert load(file) == Config(path=file)


@pytest.mark.parametrize(
    ("given", "means"),
    [
        ("~/kept", os.path.expanduser("~/kept")),  # noqa: PTH111 - as a user means it
        ("/kept", "/kept"),
        ("s3://bucket/prefix", "s3://bucket/prefix"),
        ("./~", None),
        ("~no-such-user/kept", "~no-such-user/kept"),  # refused by the storage; never a folder beside the file
    ],
)
def test_a_storage_is_a_folder_or_an_address(write: Callable[[str], Path], given: str, means: str | None) -> None:
    file = write(f'storage = "{given}"')

    assert load(file).storage == (means or os.fspath(file.parent / given))


def test_a_file_from_windows_is_read(write: Callable[[str], Path]) -> None:
    file = write("\ufeff# first\r\nmax_result_tokens = 3000\r\n\r\nx = 1\r\n")

    assert refused(file).startswith("coatcheck.toml:4: x is unknown")


def test_no_value_that_may_be_a_secret_is_shown(write: Callable[[str], Path]) -> None:
    config = load(write(WHOLE), variables={"SECRET": "s3cret", "HOST": "h0st"})

    assert "s3cret" not in repr(config)
    assert "h0st" not in repr(config)


RULES = Config(
    tools={
        "*": OverTokens(1),
        "git*": OverTokens(2),
        "github.*": OverTokens(3),
        "github.search": Never(),
        "search": Always(),
        "*s*e*a*r*c*h*": OverTokens(4),
    }
)


@pytest.mark.parametrize(
    ("tool", "server", "rule"),
    [
        ("other", None, OverTokens(1)),
        ("gitlab", None, OverTokens(2)),
        ("list", "github", OverTokens(3)),
        ("search", "gitlab", Always()),
        ("github.search", None, Never()),
    ],
)
def test_the_exact_name_decides_then_the_longest_pattern(tool: str, server: str | None, rule: object) -> None:
    assert RULES.rule_of(tool, server=server) == rule


def test_a_pattern_that_matches_no_tool_by_any_of_its_names_is_unused() -> None:
    config = Config(tools={name: Never() for name in ("search", "git*.list", "files.*", "sarch")})
    named = [config.names_of(tool, server="github") for tool in ("search", "list")]
    assert config.unused_patterns(named) == ["files.*", "sarch"]


def test_a_tool_that_no_pattern_names_has_no_rule() -> None:
    config = Config(tools={"github.*": Never()})

    assert config.rule_of("list", server="gitlab") is None
    assert config.rule_of("list") is None
    assert config.rule_of("github") is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('sstorage = "x"', "coatcheck.toml:1: sstorage is unknown; did you mean storage?"),
        ("\n\n[tool]", "coatcheck.toml:3: tool is unknown; did you mean tools?"),
        (
            "[tools.x]\nmax_tokens = 1",
            "coatcheck.toml:2: tools.x.max_tokens is unknown; did you mean max_result_tokens?",
        ),
        ("[servers.x]\nzzz = 1", "servers.x.zzz is unknown; the keys are command, args, env, cwd, url, headers"),
        ('a = """\nb\n"""', "coatcheck.toml:1: a is unknown; the keys are storage,"),
        ("storage = 1", "coatcheck.toml:1: storage must be a non-empty string, not 1"),
        ('storage = ""', "storage must be a non-empty string, not ''"),
        ("scope = []", "scope must be a string, or an array of 1 to 8 strings"),
        ("scope = true", "not true"),
        (
            "max_age = 30",
            'max_age must be a number and a unit (s, m, h, d or w) in quotes, such as "30d", or "unlimited", ',
        ),
        ('max_age = "30"', 'such as "30d", or "unlimited", not \'30\''),
        (
            "start_timeout = 90",
            'must be a number and a unit (s, m, h, d or w) in quotes, such as "90s", or "unlimited", not 90',
        ),
        ('max_bytes = "0"', "max_bytes is out of range: '0'; \"unlimited\" is no limit"),
        (f'max_bytes = "{"9" * 400}TB"', "max_bytes is out of range"),
        ("max_bytes = 9", 'max_bytes must be a number and a unit (KB, MB, GB or TB) in quotes, such as "2GB", or '),
        ('offer_tool = "later"', 'offer_tool must be "always" or "when needed", not \'later\''),
        ("offer_tool = true", 'offer_tool must be "always" or "when needed", not true'),
        ("max_result_tokens = 0", "max_result_tokens must be positive, a whole number above 0, not 0"),
        ("max_result_tokens = 9\n#\npreview_tokens = 9", "coatcheck.toml:3: preview_tokens must be less than"),
        ("show_path = 1", "show_path must be true or false, not 1"),
        ('show_path = "true"', "show_path must be true or false, not 'true'; write it without the quotes"),
        ('max_result_tokens = "4000"', "a whole number above 0, not '4000'; write it without the quotes"),
        ('[tools.x]\nmax_result_tokens = "4000"', "above 0, not '4000'; write it without the quotes"),
        (
            '[servers.a]\ncommand = ["npx", "-y"]',
            "servers.a.command must be the program alone, as a string; the rest goes",
        ),
        ("max_result_tokens = 100000", "max_result_tokens needs another key next to it: max_inline_tokens must be at"),
        ("tools = 1", "tools must be a table for each name, as in [tools.NAME], not 1"),
        ("[tools]\n\nx = [1]", "coatcheck.toml:3: tools.x must be a table, as in [tools.x], not an array"),
        ("[tools.x.y]\nnever = true", 'tools.x.y has a dot in its name, which needs quotes: [tools."x.y"]'),
        ("[tools.a.b.c]\nnever = true", 'tools.a.b has a dot in its name, which needs quotes: [tools."a.b.c"]'),
        ("[tools]\ngithub.get.never = true", 'which needs quotes: [tools."github.get"]'),
        ("[tools.a.*]\nnever = true", 'a name with such characters needs quotes: [tools."a.*"]'),
        ("[tools.x]", "coatcheck.toml:1: [tools.x] needs exactly one of max_result_tokens, never, always"),
        ("[tools.x]\nnever = true\nalways = true", "[tools.x] needs exactly one of"),
        ("[tools.x]\nnever = false", "coatcheck.toml:2: tools.x.never must be true, not false; remove the line"),
        ('[tools."a.*"]\nmax_result_tokens = "5k"', 'coatcheck.toml:2: tools."a.*".max_result_tokens must be a whole'),
        ("[tools.x]\nmax_result_tokens = true", "must be a whole number above 0, not true"),
        (
            "[tools.x]\nmax_result_tokens = 60000",
            "must be at most max_inline_tokens (50,000), not 60,000; raise that too",
        ),
        ('[servers."a.b"]\ncommand = "x"', 'coatcheck.toml:1: [servers."a.b"] needs a name of letters'),
        (f'[servers.{"a" * 49}]\ncommand = "x"', "needs a name of letters, digits, _ and -, at most 48"),
        ("[servers.a]", "[servers.a] needs either command, for a program, or url"),
        ('[servers.a]\ncommand = "x"\nurl = "http://h"', "[servers.a] needs either command"),
        ('[servers.a]\ncommand = "x"\n\nheaders = {}', "coatcheck.toml:4: servers.a.headers does not go with command"),
        ('[servers.a]\nurl = "http://h"\nargs = []', "servers.a.args does not go with url"),
        ('[servers.a]\nurl = "ftp://h"', "servers.a.url must begin with http:// or https:// and a host, not 'ftp://h'"),
        (
            '[servers.a]\nurl = "http://h:port/"',
            "servers.a.url must be an address whose port, if it has one, is a number",
        ),
        (
            '[servers.a]\nurl = "http://h:99999/"',
            "must be an address whose port, if it has one, is a number up to 65535",
        ),
        ('[servers.a]\ncommand = "x"\nargs = "y"', "servers.a.args must be an array of strings"),
        (
            '[servers.a]\ncommand = "x"\n[servers.a.env]\n\nB = 1',
            "coatcheck.toml:5: servers.a.env.B must be a string, not 1",
        ),
        ('[servers.a]\ncommand = "x"\nenv = 1', "servers.a.env must be a table of strings"),
        ('[servers.a]\ncommand = "x"\nenv.B = "${C}"', "servers.a.env names the variable C, which is not set"),
        ("a = ", "coatcheck.toml:1: this is not TOML: Invalid value"),
        ("\n\na = 'b", "coatcheck.toml:3: this is not TOML"),
        ("a = 1\na = 2", "coatcheck.toml:2: this is not TOML"),
        (f"a = {'[' * 5_000}", "coatcheck.toml:1: tables or arrays are nested too deep"),
        (f"a = {'9' * 5_000}", "coatcheck.toml:1: a number has too many digits"),
        (f"# {'x' * 100_000}", "more than 100,000: it is not a coatcheck.toml"),
    ],
)
def test_a_mistake_is_reported_with_its_line_and_key(write: Callable[[str], Path], text: str, complaint: str) -> None:
    assert complaint in refused(write(text), variables={})


HEADERS = '[servers.far]\nurl = "http://h/mcp"\nheaders.Authorization = "Bearer ${TOKEN}"'


def test_a_token_from_a_file_loses_its_line_end(write: Callable[[str], Path]) -> None:
    server = load(write(HEADERS), variables={"TOKEN": "s3cret\n"}).servers["far"]

    assert server.headers == {"Authorization": "Bearer s3cret"}


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("", "names the variable TOKEN, which is empty"),
        ("\n", "names the variable TOKEN, which is empty"),
        ("s3cr\net", "holds a line end, another control character or"),
        ("s3crét", "or a letter that is not ASCII"),
    ],
)
def test_a_value_that_no_header_can_have_is_refused_and_not_shown(
    token: str, why: str, write: Callable[[str], Path]
) -> None:
    said = refused(write(HEADERS), variables={"TOKEN": token})

    assert said.startswith("coatcheck.toml:3: servers.far.headers ")
    assert why in said
    assert "s3cr" not in said


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in a folder")
def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "coatcheck.toml")

    assert "coatcheck.toml is not a regular file; name" in refused(tmp_path / "coatcheck.toml")


def test_a_file_that_is_not_utf_8_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "coatcheck.toml"
    file.write_bytes(b"# one\n# \xff\n")

    assert refused(file) == "coatcheck.toml:2: this is not UTF-8; save the file as UTF-8"


def test_a_missing_settings_file_is_refused(tmp_path: Path) -> None:
    assert "cannot be read: No such file or directory; name the file" in refused(tmp_path / "coatcheck.toml")
    assert "cannot be read: Is a directory" in refused(tmp_path)


# One line each, except for the last two.
STATEMENTS = st.lists(
    st.sampled_from(
        ["", "# comment", "{} = 1", '{} = "[x]"', "{}.y.z = [[1]]", '{} = """\n[t]\nk = 1\n"""', "{} = [\n1,\n\n]"]
    ),
    max_size=12,
)


@given(before=STATEMENTS, value=st.sampled_from(["1", "[\n1\n]", "'''\n\n'''", "{ a = 1 }"]), after=STATEMENTS)
def test_the_reported_line_is_the_one_that_the_key_is_on(before: list[str], value: str, after: list[str]) -> None:
    above = "".join(f"{line.replace('{}', f'a{number}')}\n" for number, line in enumerate(before))
    below = "".join(f"{line.replace('{}', f'b{number}')}\n" for number, line in enumerate(after))
    text = f"{above}wanted = {value}\n{below}"
    table = Table(Path("file"), text, (), {})

    with pytest.raises(InvalidRequest, match=rf"^file:{1 + above.count(chr(10))}: wanted is wrong$"):
        table.refuse("wanted", "is wrong")
