"""How many functions and files one result passes through, and how long our functions are.

    python -m benchmarks.hops            # the table
    python -m benchmarks.hops --names    # the table, and the functions of each way in call order

Counts depend only on the code, not on the machine. A function counts once, however often it is called, and so does a
file. A lambda or comprehension counts as part of the function that defines it. Only our frames count, or those of
deepagents when that is measured; frames inside other libraries do not.
"""

from __future__ import annotations

import ast
import gc
import importlib
import importlib.util
import re
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.alike import code_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from benchmarks.systems.system import System

ROOT = Path(__file__).parents[1]
OURS = ("src/coatcheck/", "adapters/")

LOG_BYTES = 200_000
THRESHOLD_TOKENS = 2_500
THREAD = "1"
"""The `thread_id` of the benchmarks' agent, and so the scope of what it stores."""

MAX_LINES = 60
"""Lines of one function, including its docstring and comments."""

MOST = {"small result": (8, 5), "offload": (90, 20), "read lines": (60, 18), "read pattern": (90, 21)}
"""The goal of each way, in functions and files. No change may exceed it by more than a tenth, because a newcomer can
keep about half as many in mind."""

HOOK = ("convert.py", "hook.py")
"""The modules of an adapter that convert results and connect to the framework."""

_UNNAMED = re.compile(r"(\.<locals>)?\.<(lambda|listcomp|setcomp|dictcomp|genexpr)>")


@dataclass(slots=True)
class Way:
    """The functions that one call passed through."""

    functions: dict[tuple[str, str], None] = field(default_factory=dict)
    """File and qualified name of each function, in the order of first calls."""

    calls: int = 0
    depth: int = 0
    """The most of our frames on the stack at once."""

    @property
    def files(self) -> int:
        """The number of files that hold the functions."""
        return len({file for file, _ in self.functions})


def walk(work: Callable[[], object], is_ours: Callable[[str], str | None]) -> Way:
    """Call ``work``, and return what it passed through on this thread and on those it starts.

    Args:
        work: called once. What it imports must be loaded already.
        is_ours: takes the path of a file. Returns the file's name if it counts, else None.

    """
    way, files, seen = Way(), dict[str, str | None](), set[int]()

    def name_of(frame: FrameType) -> str | None:
        path = frame.f_code.co_filename
        if path not in files:
            files[path] = is_ours(path)
        return files[path]

    def note(frame: FrameType, event: str, _: object) -> None:
        file = name_of(frame) if event == "call" else None
        if file is None:
            return
        function = _UNNAMED.sub("", getattr(frame.f_code, "co_qualname", frame.f_code.co_name))
        if "<" in function.replace("<locals>", ""):
            return  # a class body, or a module that is being loaded
        way.functions.setdefault((file, function))
        if id(frame) not in seen:  # a resumed generator counts as one call
            seen.add(id(frame))
            held.append(frame)
            way.calls += 1
        way.depth = max(way.depth, sum(name_of(each) is not None for each in _stack(frame)))

    held: list[FrameType] = []  # while a frame is held, no other frame gets its id
    gc.collect()
    gc.disable()  # the finalizer of another test's object may run functions of ours, which would count too
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        gc.enable()
    return way


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def our_file(path: str) -> str | None:
    """Return the path of one of our files, relative to the checkout; None for any other file."""
    try:
        inside = Path(path).relative_to(ROOT).as_posix()
    except ValueError:
        return None
    return inside if inside.startswith(OURS) else None


def _deepagents_file(path: str) -> str | None:
    return path.rpartition("/deepagents/")[2] if "/deepagents/" in path else None


def log(number: int = 0) -> str:
    """Return a log of ``LOG_BYTES`` with one line of trouble. Another ``number`` gives another log."""
    lines = [f"2026-03-01 12:00:{second % 60:02} INFO worker {number} took job {second}\n" for second in range(6_000)]
    lines[3_000] = "2026-03-01 12:50:00 ERROR worker failed: ConnectionError: no route to host\n"
    return "".join(lines)[:LOG_BYTES]


def _system(name: str, folder: Path) -> System:
    """Return one of the benchmarks' systems in LangChain. Imported late, because LangChain may be missing."""
    system: System = getattr(importlib.import_module("benchmarks.systems.in_langchain"), name)(folder)
    return system


def our_ways(folder: Path) -> dict[str, Way]:
    """Return the ways through coatcheck: its LangChain middleware with file storage."""
    from coatcheck import FileStorage, Offloader  # noqa: PLC0415 - load late what is measured

    if our_file(str(sys.modules["coatcheck"].__file__)) is None:
        sys.exit("the coatcheck that runs is not that of this checkout: install it with pip install -e .")
    system = _system("CoatcheckInLangChain", folder)
    system.offloading(log(1))()  # loads everything
    ways = {
        "small result": walk(system.passing("a small result"), our_file),
        "offload": walk(system.offloading(log()), our_file),
    }
    offloader = Offloader(FileStorage(folder))
    reference = re.findall(r"[a-z]+-[0-9a-f]{16}-[0-9a-f]{4}", system.offloading(log())())[0]
    for name, selectors in {"read lines": {"line_range": "100-120"}, "read pattern": {"pattern": "ERROR"}}.items():

        def read(selectors: dict[str, str] = selectors) -> object:
            return offloader.retrieve(reference, identity=THREAD, **selectors)  # type: ignore[arg-type]  # selectors are strings

        read()
        ways[name] = walk(read, our_file)
    return ways


def deepagents_ways(folder: Path) -> dict[str, Way]:
    """Return the same ways through deepagents' own offloading; none if it is not installed."""
    if importlib.util.find_spec("deepagents") is None:
        return {}
    system = _system("Deepagents", folder)
    system.offloading(log(1))()
    ways = {
        "small result": walk(system.passing("a small result"), _deepagents_file),
        "offload": walk(system.offloading(log()), _deepagents_file),
    }
    reads: dict[str, Callable[[], object]] = {
        "read lines": lambda: system.read(100, 120),
        "read pattern": lambda: system.find("ERROR"),
    }
    for name, read in reads.items():
        read()
        ways[name] = walk(read, _deepagents_file)
    return ways


def longest_functions(folder: Path, most: int = 5) -> list[tuple[int, str]]:
    """Return the longest functions below ``folder``: the number of lines, from ``def`` to the end, and the place."""
    found: list[tuple[int, str]] = []
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                found.append((lines, f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"))
    return sorted(found, reverse=True)[:most]


def hook_lines() -> dict[str, int]:
    """Return the code lines in each adapter's conversions and hook. ``coatcheck_claude`` has no conversions."""
    adapters = sorted(path.parent for path in ROOT.glob("adapters/*/hook.py"))
    return {
        adapter.name: sum(code_lines(adapter / module) for module in HOOK if (adapter / module).exists())
        for adapter in adapters
    }


def _print_ways(title: str, ways: dict[str, Way], *, names: bool) -> None:
    print(f"{title:<16}{'functions':>10}{'files':>7}{'calls':>7}{'depth':>7}")
    for name, way in ways.items():
        print(f"  {name:<14}{len(way.functions):>10}{way.files:>7}{way.calls:>7}{way.depth:>7}")
        if names:
            for file, function in way.functions:
                print(f"      {file}  {function}")
    print()


def main() -> None:
    """Print all counts."""
    names = "--names" in sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        _print_ways("coatcheck", our_ways(Path(folder, "ours")), names=names)
        theirs = deepagents_ways(Path(folder, "theirs"))
    if theirs:
        _print_ways("deepagents", theirs, names=names)
    else:
        print("deepagents       is not installed here\n")
    print(f"longest functions, at most {MAX_LINES} lines each")
    for lines, place in longest_functions(ROOT / "src" / "coatcheck"):
        print(f"  {lines:>4}  {place}")
    print("\ncode lines of conversions and hook, at most 250 for each adapter")
    for adapter, lines in hook_lines().items():
        print(f"  {lines:>4}  {adapter}")


if __name__ == "__main__":
    main()
