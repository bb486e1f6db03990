"""Deliberate faults, each one small edit of the library, with the tests that must notice it.

An edit has an old text that occurs exactly once in its file, so that code that moves is noticed. It edits only code,
because words change more often than behaviour. Only the list belongs here; ``__main__`` makes the edits.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ("MUTATIONS", "Mutation")


class Mutation(NamedTuple):
    """One edit."""

    file: str
    """Below ``src/coatcheck``."""

    old: str
    """The code to replace."""

    new: str
    """What takes its place."""

    tests: tuple[str, ...]
    """The test files that must notice, below ``tests``."""


_PREVIEW = ("core/test_preview.py", "core/test_preview_kinds.py")
_LARGE_JSON = ("core/test_preview_large_json.py",)
_SEARCH = ("core/test_reading_search.py", "core/test_reading_modes.py")
_PLAN = ("core/test_plan.py",)
_TOKENS = ("core/test_tokens.py", "core/test_plan.py")
_POLICY = ("core/test_policy.py", "core/test_offloader.py")
_EXECUTION = ("core/test_execution.py", "core/test_queues.py", "core/test_threads.py", "core/test_forks.py")
_SILENCE = ("core/test_silence.py",)
_EVENTS = ("core/test_events.py", "core/test_telemetry.py")
_SWEEP = ("core/test_sweep.py", "core/test_delete_scope.py")
_FILE = ("storage/test_file.py", "storage/test_file_cleanup.py", "storage/test_file_order.py")
_MEMORY = ("storage/test_memory.py",)
_OFFLOADER = ("core/test_engine.py", "core/test_offloader.py", "core/test_invariants.py")
_PLACEHOLDER = ("core/test_placeholder.py", "core/test_offloader.py", "core/test_items.py")
_BROKEN = ("core/test_wrong_answers.py", "core/test_offloader.py", "storage/test_file.py")

MUTATIONS: tuple[Mutation, ...] = (
    # What stays in view.
    Mutation("core/preview/kinds.py", "and not once.exceeds(content.text, budget)", "", _PREVIEW),
    Mutation(
        "core/preview/kinds.py", "content.failures[show.__name__] = error", "pass", ("core/test_preview_guard.py",)
    ),
    Mutation(
        "core/preview/kinds.py",
        "except TooMuchWork:\n                continue",
        "except TooMuchWork:\n                raise",
        ("core/test_preview_work.py",),
    ),
    Mutation(
        "core/preview/text.py",
        "return piece[:cut] if cut >= len(piece) * _MIN_OF_A_CUT else piece",
        "return piece",
        _PREVIEW,
    ),
    Mutation("core/preview/text.py", "or end == len(text) else 1)", "or end == len(text) else 0)", _PREVIEW),
    Mutation("core/preview/text.py", "room -= over", "room -= room", _PREVIEW),
    Mutation("core/preview/json_list.py", "if math.isinf(number):", "if False:", _LARGE_JSON),
    Mutation("core/preview/json_ends.py", 'or head[at - 1] == "]"', "", _LARGE_JSON),
    Mutation("core/preview/json_ends.py", "if another.search(text, start, stop):", "if False:", _LARGE_JSON),
    Mutation("core/preview/log.py", "if len(group.lines) == _ALIKE:", "if False:", _PREVIEW),
    Mutation("core/preview/work.py", "self.left -= units", "self._left -= 0", ("core/test_preview_work.py",)),
    # Reading back.
    Mutation("core/reading/source.py", "return first, min(last, index.lines)", "return first, last", _SEARCH),
    Mutation("core/reading/slices.py", 'piece.removesuffix("\\r")', "piece", _SEARCH),
    Mutation("core/reading/source.py", "return max(0, total + offset)", "return total + offset", _SEARCH),
    Mutation("core/reading/search.py", "sum(hit.start < origin.byte for", "sum(hit.start <= origin.byte for", _SEARCH),
    Mutation("core/reading/search.py", "while count and rows[count - 1].owner >= shown:", "while False:", _SEARCH),
    Mutation("core/reading/search.py", "else self.found.next_character", "else None", _SEARCH),
    Mutation(
        "core/reading/scan.py",
        "start, data = start + known, data[known:]",
        "start, data = start, data[known:]",
        _SEARCH,
    ),
    Mutation(
        "core/reading/pattern.py",
        "options.never_nl = True",
        "options.never_nl = False",
        ("core/test_reading_pattern.py", *_SEARCH),
    ),
    Mutation(
        "core/reading/pattern.py", 'if r"\\Q" in pattern:', "if False:", ("core/test_reading_pattern.py", *_SEARCH)
    ),
    Mutation(
        "core/reading/pattern.py", "return numbers == sorted(numbers)", "return True", ("core/test_reading_pattern.py",)
    ),
    Mutation(
        "core/arguments.py",
        "return max(0, min(lines, MAX_CONTEXT_LINES))",
        "return max(0, lines)",
        ("core/test_reading_request.py", *_SEARCH),
    ),
    # Counting and deciding.
    Mutation("core/tokens.py", "while cut and self.exceeds(text[:cut], limit):", "while False:", _TOKENS),
    Mutation("core/tokens.py", "_TOKENS_OF_A_CUT = 8", "_TOKENS_OF_A_CUT = 0", _TOKENS),
    Mutation(
        "core/tokens.py",
        "return counter if type(counter) in {ByteCounter, TiktokenCounter} else _ForAnyText(counter)",
        "return counter",
        (*_TOKENS, "core/test_measuring.py"),
    ),
    Mutation(
        "core/tokens.py",
        "total += sampled * left // (SAMPLES * SAMPLE_CHARACTERS)",
        "total = sampled * left // (SAMPLES * SAMPLE_CHARACTERS)",
        _TOKENS,
    ),
    Mutation(
        "core/policy.py",
        "return max(1, int(self.share * self.context_window))",
        "return int(self.share * self.context_window)",
        _POLICY,
    ),
    Mutation("core/plan.py", "if isinstance(names, tuple) and tool_name in names:", "if tool_name in names:", _POLICY),
    Mutation(
        "core/plan.py",
        "return verdict if isinstance(verdict, Rule) else settings.default_rule",
        "return settings.default_rule",
        _POLICY,
    ),
    Mutation("core/blocks.py", "if text.isascii() else utf8_length(text)", "if True else 0", _PLAN),
    Mutation(
        "core/plan.py",
        "min(policy.threshold, settings.max_inline_tokens)",
        "policy.threshold",
        (*_PLAN, *_OFFLOADER),
    ),
    Mutation(
        "core/plan.py",
        "share = min(decision.preview_tokens, left // (len(offloaded) - position))",
        "share = left // len(offloaded)",
        _PLAN,
    ),
    # References and the placeholder.
    Mutation("core/references.py", "if len(found) != 1:", "if not found:", ("core/test_references.py",)),
    Mutation(
        "core/references.py",
        "if _tags_in(wanted) - {_hash_scope(scope)} or ",
        "if ",
        ("core/test_references.py", "core/test_named_references.py"),
    ),
    Mutation(
        "core/references.py",
        'hashed = digest.encode() + b"\\n" + hashed',
        "pass",
        ("core/test_references.py", "core/test_named_references.py", "storage/test_formats.py"),
    ),
    Mutation(
        "core/notice.py",
        "path is not None and len(path) <= _LONGEST_PATH",
        "path is not None",
        ("core/test_notice.py", *_PLACEHOLDER),
    ),
    Mutation(
        "core/notice.py",
        'line = re.sub(_NOT_SHOWN, " ", text[: 4 * longest]).strip()',
        "line = text",
        ("core/test_notice.py",),
    ),
    Mutation("core/placeholder.py", "_ROUNDS = 3", "_ROUNDS = 1", _PLACEHOLDER),
    Mutation("core/placeholder.py", "left -= counter.count(made[number]) + 1", "left -= 0", _PLACEHOLDER),
    # The engine, and where its work runs.
    Mutation(
        "engine/offloading.py",
        "return any(self._contents.belongs(match.group(), scope) for match in found)",
        "return True",
        ("core/test_notice.py", *_OFFLOADER),
    ),
    Mutation("engine/offloading.py", "if not measure.exceeds(limit):", "if False:", _OFFLOADER),
    Mutation(
        "engine/offloading.py",
        "if is_count(answer) else None",
        "if True else None",
        ("core/test_measuring.py", *_OFFLOADER),
    ),
    Mutation("engine/contents.py", "fits_key = key.is_line_index or ", "fits_key = True or ", _BROKEN),
    Mutation("engine/contents.py", 'or metadata.get("sha256", digest) != digest', "", _BROKEN),
    Mutation("engine/contents.py", "if len(entry.content) == found.stored.size:", "if False:", _BROKEN),
    Mutation("engine/contents.py", "and len(answer.splitlines()) == 1", "", ("core/test_named_references.py",)),
    Mutation("engine/loops.py", "is_late = not task.done()", "is_late = False", _EXECUTION),
    Mutation(
        "engine/execution.py",
        "return min(self._entered + self._queue.seconds, ",
        "return max(self._entered, ",
        _EXECUTION,
    ),
    Mutation("engine/execution.py", "in_forked_child(_start_afresh)", "", _EXECUTION),
    Mutation("engine/execution.py", "return threads.waiting > 0", "return False", (*_EXECUTION, "core/test_stall.py")),
    Mutation(
        "engine/execution.py",
        "self._next_try = began + PAUSE_SECONDS  # meanwhile the others do not wait",
        "pass",
        _SILENCE,
    ),
    Mutation("engine/loops.py", "await asyncio.wait({task}, timeout=LAST_LOOK_SECONDS)", "pass", _EXECUTION),
    Mutation("engine/execution.py", "or ended - began < IN_VAIN_SECONDS", "", _SILENCE),
    Mutation("engine/execution.py", "elif self._answered <= began and", "elif", _SILENCE),
    Mutation("engine/execution.py", "if call.local:  # what", "if False:  # what", _SILENCE),
    Mutation("engine/execution.py", "if 0 < next_try <= began:", "if 0 < next_try:", _SILENCE),
    Mutation("engine/execution.py", "<= began and not may_be_large", "<= began", _SILENCE),
    Mutation("engine/execution.py", "and not (anyway is not None and anyway())", "", _SILENCE),
    Mutation("engine/cleanup.py", "if age > GRACE_SECONDS and is_past:", "if is_past:", _SWEEP),
    Mutation("engine/cleanup.py", "total -= entry.size", "total -= 0", _SWEEP),
    Mutation("engine/cleanup.py", "if not _count_older(listed, now):", "if True:", _SWEEP),
    Mutation("engine/events.py", "if self._names_what_was_stored else None", "", _EVENTS),
    Mutation("engine/events.py", "error.__suppress_context__ = True", "pass", _EVENTS),
    # Scopes and storages.
    Mutation(
        "scopes.py",
        "(argument, ambient, identity)",
        "(argument, identity, ambient)",
        ("core/test_scopes.py",),
    ),
    Mutation("scopes.py", "_unwarned.pop()", "_unwarned[0]", ("core/test_scopes.py",)),
    Mutation("storage/file.py", "is not None and folder.read(name) == content:", "is not None:", _FILE),
    Mutation("storage/file.py", "if not self._fsync and ", "if ", _FILE),
    Mutation(
        "storage/entry_files.py",
        'if status is None or status.st_size != existing["size"]:',
        "if status is None:",
        _FILE,
    ),
    Mutation("storage/entry_files.py", "map(folder.status_now, names)", "map(folder.status, names)", _FILE),
    Mutation("storage/file.py", "if not was_used:", "if True:", _FILE),
    Mutation(
        "storage/folder.py",
        "_TO_READ = os.O_RDONLY | _NO_FOLLOW | _NO_WAITING",
        "_TO_READ = os.O_RDONLY | _NO_WAITING",
        _FILE,
    ),
    Mutation("storage/folder.py", "if size not in {None, status.st_size}:", "if False:", _FILE),
    Mutation(
        "storage/folder.py",
        "fcntl.flock(held, fcntl.LOCK_UN)",
        "pass",
        (*_FILE, "storage/test_file_processes.py", "core/test_forks.py"),
    ),
    Mutation("storage/memory.py", "self._bytes -= existing[0].size", "pass", _MEMORY),
    Mutation(
        "storage/memory.py",
        "while self._bytes > self._max_bytes or",
        "while self._bytes >= self._max_bytes or",
        _MEMORY,
    ),
    Mutation("storage/memory.py", "self._use(key, found[0])", "pass", _MEMORY),
)
"""Over preview, reading, tokens, policy, plan, references, notice, placeholder, engine, contents, execution, cleanup,
events, scopes and storages."""
