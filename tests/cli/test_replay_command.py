"""``coatcheck replay``: what it prints, as tables and as JSON, what it writes, and how it ends."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import RETRIEVAL_TOOL, InvalidRequest, Offloader, TextBlock
from coatcheck.replay import measure
from coatcheck.replay.billing import DEFINITION
from coatcheck.replay.files import ACCEPTED
from coatcheck.replay.measure import conversation_report
from tests.cli.running import answered, at_terminal, run
from tests.replay.samples import BIG, RECORDERS, anthropic, openai, saved, session, strands

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from coatcheck.core.blocks import Block, Outcome
    from coatcheck.replay.measure import CountedConversation
    from coatcheck.replay.report import ConversationReport

PASTE = "To paste, where the Offloader or the adapter is made:"


def facts(*arguments: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = answered("replay", *arguments)
    return found


@pytest.fixture
def big(tmp_path: Path) -> Path:
    return saved(tmp_path / "big.json", openai(BIG))


@pytest.mark.parametrize("record", [record for records in RECORDERS.values() for record in records])
def test_every_format_saves_the_same(record: Callable[[str], Any], big: Path, tmp_path: Path) -> None:
    found = facts(saved(tmp_path / "other.json", record(BIG)))

    assert found["total"] == facts(big)["total"]


def test_the_json_numbers_agree_with_each_other_and_with_the_tables(big: Path) -> None:
    found, shown = facts(big, "--retrievals", "0"), run("replay", big, "--retrievals", "0").output

    total = found["total"]
    best = total["best_threshold"]
    assert [one["threshold"] for one in total["thresholds"]] == [1_000, 2_500, 5_000, 10_000, 20_000]
    for one in total["thresholds"]:
        assert one["tokens"] + one["tokens_saved"] == total["without"]["tokens"]
        assert f"{one['tokens']:,}" in shown
        share = one["tokens_saved"] / total["without"]["tokens"]
        assert f" {share:.1%}{'*' if one['threshold'] == best else ' '}" in shown
    assert f"max_result_tokens={best} saves most" in " ".join(shown.split())
    assert {tool["name"] for tool in found["tools"]} == {"search", DEFINITION, None}
    assert sum(tool["without"]["tokens"] for tool in found["tools"]) == total["without"]["tokens"]
    assert found["conversations"][0]["name"] == "big.json"
    assert found["conversations"][0]["leaving"][0]["tool"] == "search"


def test_the_threshold_that_saves_most_is_not_always_the_smallest(tmp_path: Path) -> None:
    """Two medium-sized results are read back at once, which costs more than leaving them in place."""
    medium = "\n".join(BIG.splitlines()[:200])
    path = saved(tmp_path / "a.json", [*openai(medium), *openai(medium), *openai(BIG)])

    found = facts(
        path, "--threshold", "1000", "--threshold", "5000", "--retrievals", "1", "--retrieval-tokens", "2500"
    )["total"]

    assert [one["offloaded"] for one in found["thresholds"]] == [3, 1]
    assert found["best_threshold"] == 5_000


def test_it_says_so_if_offloading_does_not_pay(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.json", openai("short"))

    assert facts(path)["total"]["best_threshold"] is None
    said = " ".join(run("replay", path).output.split())
    assert "reads back what it later used and the preview lacks, offloading does not pay on these conversations" in said
    assert "To paste" not in said


def test_it_names_the_threshold_if_offloading_pays_only_with_a_prompt_cache(big: Path) -> None:
    given = ("--threshold", "2500", "--retrievals", "1", "--retrieval-tokens", "9000", "--prefix-tokens", "30000")

    said = plainly(run("replay", big, *given).output)
    assert facts(big, *given)["total"]["best_threshold"] is None
    assert "does not pay on these conversations at any of these thresholds" in said
    assert "; with a prompt cache, max_result_tokens=2500 saves " in said


def test_the_mark_of_the_largest_saving_is_next_to_the_price_that_decides(big: Path) -> None:
    def row(*arguments: str) -> str:
        lines = run("replay", big, "--threshold", "2500", *arguments).output.splitlines()
        return next(line for line in lines if line.strip().startswith("2,500"))

    plain, cached = (share_of.split("%") for share_of in (row(), row("--price", "3", "--cached-price", "0.3")))
    assert [part[:1] for part in plain[1:]] == ["*", " "]
    assert [part[:1] for part in cached[1:]] == [" ", "*"]


def test_it_says_so_if_most_conversations_cost_more(big: Path, tmp_path: Path) -> None:
    short = [saved(tmp_path / f"{number}.json", openai("short")) for number in range(2)]

    said = plainly(run("replay", big, *short).output)
    assert "with a prompt cache. Most cost more: a few large results pay for all." in said
    assert "Most cost more" not in plainly(run("replay", big, short[0]).output)
    assert "Most cost more" not in plainly(run("replay", *short).output)  # here no large result pays for them


def test_the_given_thresholds_are_sorted_and_deduplicated(big: Path) -> None:
    found = facts(big, "--threshold", "3000", "--threshold", "500", "--threshold", "3000")

    assert [one["threshold"] for one in found["total"]["thresholds"]] == [500, 3_000]


def test_read_backs_are_assumed_as_the_options_say(big: Path) -> None:
    def tokens(*arguments: str) -> int:
        billed: int = facts(big, "--threshold", "2500", *arguments)["total"]["thresholds"][0]["tokens"]
        return billed

    none, one, two = (tokens("--retrievals", number, "--retrieval-tokens", "256") for number in "012")
    larger = tokens("--retrievals", "1", "--retrieval-tokens", "456")

    assert none < one < two
    assert larger - one == 200
    assert tokens("--retrievals", "1") == tokens("--retrievals", "1", "--retrieval-tokens", "2500")


def test_by_need_only_a_result_that_was_used_and_not_shown_is_read_back(tmp_path: Path) -> None:
    more = [{"role": "user", "content": "and?"}, {"role": "assistant", "content": "It is in row 500."}]
    path = saved(tmp_path / "a.json", [*openai(BIG), *openai(BIG), *more])

    given = ("--threshold", "2500", "--preview-tokens", "500")
    (found,) = facts(path, *given)["total"]["thresholds"]
    said = " ".join(run("replay", path, *given).output.split())

    assert (found["offloaded"], found["read_back"]) == (2, 1)
    never, each = (f"{found[bound]['plain']:.1%}" for bound in ("saved_if_never_read", "saved_if_each_read"))
    assert "Above 2,500 tokens, 2 results would be offloaded, with 1 read-back." in said
    assert f"% ({never} if it reads nothing back, {each} if it reads each offloaded result back once)" in said


def test_the_settings_that_save_most_are_a_line_to_paste(big: Path) -> None:
    line = f"\n{PASTE} max_result_tokens=1000, preview_tokens=250\n"
    assert line in run("replay", big).output
    said = run("replay", big, "--threshold", "2500", "--preview-tokens", "400").output
    assert f"\n{PASTE} max_result_tokens=2500, preview_tokens=400\n" in said
    assert facts(big)["best_settings"] == {"max_result_tokens": 1_000, "preview_tokens": 250}
    assert facts(big, "--preview-tokens", "400")["assumptions"]["preview_tokens"] == 400


@pytest.mark.parametrize(
    "given",
    [
        ("--retrieval-tokens", "256"),
        ("--threshold", "2500", "--preview-tokens", "2500"),
        ("--threshold", "300", "--threshold", "1000", "--preview-tokens", "500"),
        ("--threshold", "100"),
    ],
)
def test_an_offloader_accepts_the_line_to_paste(given: tuple[str, ...], big: Path) -> None:
    settings = facts(big, *given)["best_settings"]

    assert Offloader(**settings).settings.max_result_tokens == settings["max_result_tokens"]


def test_another_preview_is_recommended_only_if_it_saves_noticeably_more(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.json", openai("\n".join(BIG.splitlines()[:300])))
    far = facts(path, "--threshold", "2500", "--prefix-tokens", "100000")

    assert far["previews"][0]["tokens"] < far["previews"][1]["tokens"]
    assert far["best_settings"] == {"max_result_tokens": 2_500}


def test_other_previews_are_tried_at_the_best_threshold(big: Path) -> None:
    """The agent used nothing from the result, so the smallest preview costs least."""
    found, said = facts(big, "--threshold", "2500"), plainly(run("replay", big, "--threshold", "2500").output)

    sizes = {each["preview_tokens"]: each for each in found["previews"]}
    assert list(sizes) == [250, 500, 1_000]
    assert sizes[250]["tokens"] < sizes[500]["tokens"] < sizes[1_000]["tokens"]
    assert sizes[500].items() >= found["total"]["thresholds"][0].items()
    assert all(
        facts(big, "--threshold", "2500", "--preview-tokens", str(size))["total"]["thresholds"][0].items()
        <= each.items()
        for size, each in sizes.items()
    )
    assert found["best_settings"] == {"max_result_tokens": 2_500, "preview_tokens": 250}
    assert f"max_result_tokens=2500 with preview_tokens=250 saves most: {sizes[250]['saved']['plain']:.1%} (" in said
    assert "Above 2,500 tokens, by the tokens that a preview may have, at most 40% of the threshold:" in said
    assert "saves with the default preview of 500 tokens, at most 40% of the threshold (* most), by tool:" in said


def test_a_preview_that_saves_little_more_is_named_and_not_recommended(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.json", [{"role": "user", "content": "word " * 60_000}, *openai(BIG)])
    found, said = facts(path, "--threshold", "2500"), plainly(run("replay", path, "--threshold", "2500").output)

    small, default = (each["saved"]["plain"] for each in found["previews"][:2])
    assert 0.0005 < small - default < 0.005
    assert found["best_settings"] == {"max_result_tokens": 2_500}
    assert f"With preview_tokens=250 it would be {small - default:.2%} more: too little to change the default." in said
    assert f"{PASTE} max_result_tokens=2500 (the default; in Strands and Haystack previews may differ)" in said


def test_a_larger_preview_is_recommended_if_it_avoids_a_read_back(tmp_path: Path) -> None:
    """The agent used a line near the beginning, and a read-back would send the long conversation once more."""
    rows = "\n".join(f"{number} {'word ' * 12}" for number in range(10_000, 10_400))
    used = [{"role": "user", "content": "next"}, {"role": "assistant", "content": "It is 10012."}]
    path = saved(tmp_path / "a.json", [*openai(rows), *used])

    found = facts(path, "--threshold", "5000", "--prefix-tokens", "50000")

    assert [each["read_back"] for each in found["previews"]] == [1, 0, 0, 0]
    assert found["best_settings"] == {"max_result_tokens": 5_000}


@pytest.mark.parametrize("given", [("--preview-tokens", "500"), ("--retrievals", "1")])
def test_no_other_preview_is_tried_if_one_is_given_or_read_backs_do_not_depend_on_it(
    given: tuple[str, ...], big: Path
) -> None:
    (only,) = facts(big, "--threshold", "2500", *given)["previews"]

    assert only["preview_tokens"] == 500
    assert "by the tokens that a preview may have" not in run("replay", big, "--threshold", "2500", *given).output


def test_the_columns_are_explained_below_the_table(big: Path) -> None:
    said = plainly(run("replay", big).output)
    priced = plainly(run("replay", big, "--price", "3").output)

    legend = (
        "Cached: with a prompt cache. Dearer: conversations that cost at least 2% more. Saved: of the cost of input"
    )
    assert legend in said
    assert ("Cost: in the unit of --price." in said, "Cost: in the unit of --price." in priced) == (False, True)
    assert "Results Read Billed" in said
    assert "Conversations that would cost at least 2% more: 0 of 1, or 0 with a prompt cache." in said


def test_conversations_that_would_cost_more_are_counted_at_both_prices(big: Path, tmp_path: Path) -> None:
    short = saved(tmp_path / "short.json", openai("short"))

    found = facts(big, short, "--threshold", "2500")
    far = facts(big, short, "--threshold", "2500", "--prefix-tokens", "100000")

    assert found["dearer"] == [{"threshold": 2_500, "plain": 1, "cached": 1}]
    assert far["dearer"] == [{"threshold": 2_500, "plain": 0, "cached": 0}]
    said = " ".join(run("replay", big, short, "--threshold", "2500").output.split())
    assert "Conversations that would cost at least 2% more: 1 of 2, or 1 with a prompt cache." in said


def test_the_prefix_of_every_turn_is_billed_with_and_without_offloading(big: Path) -> None:
    none, some = facts(big), facts(big, "--prefix-tokens", "1000")

    for before, after in zip(
        [none["total"]["without"], *none["total"]["thresholds"]],
        [some["total"]["without"], *some["total"]["thresholds"]],
        strict=True,
    ):
        turns = none["turns"] + before.get("read_back", 0)
        assert after["tokens"] == before["tokens"] + 1_000 * turns


def test_without_a_prefix_it_says_what_is_not_counted(big: Path) -> None:
    missing = "No system prompt and no other tools are counted: pass their tokens as --prefix-tokens"

    assert missing in plainly(run("replay", big).output)
    assert missing not in plainly(run("replay", big, "--prefix-tokens", "10000").output)


SYSTEM = {"role": "system", "content": "You help."}
TOOLS = [{"type": "function", "function": {"name": "search", "parameters": {}}}]


@pytest.mark.parametrize(
    ("recorded", "said"),
    [
        (
            [[SYSTEM, *openai(BIG)]],
            "The recorded system message is counted: pass only the tokens of the other tools as",
        ),
        (
            [{"system": "You help.", "messages": anthropic(BIG)}],
            "The recorded system message is counted: pass only the tokens of the other tools as",
        ),
        (
            [{"tools": TOOLS, "messages": openai(BIG)}],
            "The recorded definitions of tools are counted: pass only the tokens of the system prompt as",
        ),
        (
            [[SYSTEM, *openai(BIG)], openai(BIG)],
            "What was recorded of system prompt and tools is counted: pass only the tokens of the rest as",
        ),
    ],
)
def test_a_recorded_part_of_the_prefix_is_not_asked_for_again(recorded: list[Any], said: str, tmp_path: Path) -> None:
    shown = plainly(run("replay", saved(tmp_path / "recorded.json", recorded)).output)

    assert f"{said} --prefix-tokens, since they change all of these shares." in shown
    assert "No system prompt" not in shown


def test_a_request_with_all_that_was_sent_asks_for_no_prefix(tmp_path: Path) -> None:
    request = {"tools": TOOLS, "messages": [SYSTEM, *openai(BIG)]}

    assert "pass" not in plainly(run("replay", saved(tmp_path / "recorded.json", request)).output)


def test_a_conversation_without_a_tool_result_has_nothing_to_offload(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    path = saved(tmp_path / "talk.json", talk)
    found = facts(path)
    definition = found["assumptions"]["definition_tokens"]

    shown = run("replay", path).output

    assert "%" not in shown
    assert plainly(shown) == (
        "1 conversation, 1 turn, 0 tool results No tool result was recorded, so there was nothing to offload. The"
        f" definition of the retrieval tool alone would have cost {definition} tokens with each turn, {definition} in"
        " all, on top of 1."
    )


def test_prices_become_costs(big: Path) -> None:
    plain = facts(big, "--price", "3")["total"]
    cached = facts(big, "--price", "3", "--cached-price", "0.6")["total"]
    written = facts(big, "--price", "3", "--written-price", "3")["total"]

    for one in (plain["without"], *plain["thresholds"]):
        assert one["cost"] == pytest.approx(one["tokens"] * 3 / 1e6)
    for found, hit, write in ((plain, 0.3, 3.75), (cached, 0.6, 3.75), (written, 0.3, 3.0)):
        for one in (found["without"], *found["thresholds"]):
            again = one["tokens"] - one["new_tokens"]
            assert one["cached_cost"] == pytest.approx((one["new_tokens"] * write + again * hit) / 1e6)
    assert re.search(
        r" Cost +cached *\n.*\n none +0 +0 +\S+ +\d+\.\d\d +\d+\.\d\d", run("replay", big, "--price", "3").output
    )
    assert "cost" not in facts(big)["total"]["without"]
    assert "Cost" not in run("replay", big).output


@pytest.mark.parametrize("cache", [(), ("--cached-price", "300"), ("--written-price", "3750")])
def test_the_saved_amount_matches_the_share_next_to_it(cache: tuple[str, ...], big: Path) -> None:
    headline = " ".join(run("replay", big, "--price", "3000", *cache).output.split())
    saved, of, share = re.findall(r"saves most: ([\d,.]+) of ([\d,.]+) in the unit .*?which is ([\d.]+)%", headline)[0]

    assert float(share) == pytest.approx(100 * float(saved.replace(",", "")) / float(of.replace(",", "")), abs=0.1)
    assert ("--price with a prompt cache, which is" in headline) is bool(cache)


def test_the_definition_is_in_the_first_row_however_many_tools_there_are(tmp_path: Path) -> None:
    calls = json.dumps([message for _ in range(30) for message in openai(BIG)])
    for number in range(30):  # a tool for each call
        calls = calls.replace('"name": "search"', f'"name": "tool_{number}"', 1)
    path = tmp_path / "a.json"
    path.write_text(calls)
    rows = run("replay", path).output.partition("by tool:")[2].partition("by conversation")[0].splitlines()
    names = [row.split()[0] for row in rows if re.match(r" (?:\(|tool_)", row)]

    assert names[0] == DEFINITION
    assert len(names) == 15


def test_no_heading_and_no_fixed_name_is_cut_in_80_columns(big: Path) -> None:
    prices = ("--price", "3", "--cached-price", "0.3")

    assert "…" not in run("replay", big, *prices).output


def test_with_a_cache_the_cost_decides_the_best_threshold(tmp_path: Path) -> None:
    """Cached tokens cost nothing here, so taking a result out and reading it back whole cannot pay."""
    path = saved(tmp_path / "a.json", [*openai(BIG), *[{"role": "assistant", "content": "more"}] * 20])

    def best(*arguments: str) -> int | None:
        threshold: int | None = facts(
            path, "--threshold", "2500", "--retrieval-tokens", "99999", "--retrievals", "2", *arguments
        )["total"]["best_threshold"]
        return threshold

    assert best("--price", "3", "--retrieval-tokens", "256") == 2_500
    assert best("--price", "3", "--cached-price", "0") is None


@pytest.mark.parametrize(
    ("retrievals", "said"),
    [
        ("0", "If the model never reads a result back,"),
        ("1", "If the model reads each offloaded result back once,"),
        ("3", "If the model reads each offloaded result back 3 times,"),
    ],
)
def test_the_headline_begins_with_the_assumption_that_decides_it(retrievals: str, said: str, big: Path) -> None:
    assert said in " ".join(run("replay", big, "--retrievals", retrievals).output.split())


def test_the_definition_of_the_retrieval_tool_has_a_row_of_its_own(big: Path) -> None:
    report = facts(big)
    row = next(tool for tool in report["tools"] if tool["name"] == DEFINITION)

    assert row["without"]["tokens"] == 0
    assert {one["tokens"] for one in row["thresholds"]} == {
        report["turns"] * report["assumptions"]["definition_tokens"]
    }


def test_a_page_in_a_missing_folder_is_refused_before_anything_is_replayed(big: Path, tmp_path: Path) -> None:
    ran = run("replay", big, "--html", big.parent / "nowhere/page.html")

    assert ran.exit_code == 2
    assert "is not a folder" in ran.output
    assert "Threshold" not in ran.output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "assumed: one search for each offloaded result of which a later turn wrote something"),
        (("--retrievals", "1"), "assumed: 1 for each offloaded result"),
        ((), "assumed: 0 tokens of system prompt and other tools (--prefix-tokens)"),
        (("--prefix-tokens", "9000"), "assumed: 9,000 tokens of system prompt and other tools"),
        (("--retrievals", "0"), "this is the most that can be saved"),
        ((), "a hit costs 0.1 times the price of an input token, a write 1.25 times"),
        (("--price", "2", "--cached-price", "1"), "a hit costs 0.5 times the price of an input token"),
        (("--price", "3", "--cached-price", "0"), "a hit costs 0 times the price of an input token"),
        ((), "an answer of at most the threshold"),
        (("--retrieval-tokens", "300"), "an answer of at most 300 tokens"),
        ((), "images, audio, video and documents"),
        ((), "o200k_base"),
        ((), "Whether what follows the last answer in a list of messages was sent; assumed: it was not"),
    ],
)
def test_the_report_says_what_a_recording_cannot_tell(arguments: tuple[str, ...], sentence: str, big: Path) -> None:
    shown = " ".join(run("replay", big, *arguments).output.split())

    assert sentence in shown
    assert any(sentence in one for one in facts(big, *arguments)["assumptions"]["not_known"])


def test_many_files_and_folders_are_one_report(big: Path, tmp_path: Path) -> None:
    session(tmp_path / "sessions", strands(BIG))

    found = facts(big, tmp_path / "sessions")

    assert [one["name"] for one in found["conversations"]] == ["big.json", "session_1/agent_default"]
    assert found["total"]["results"] == 2
    assert found["turns"] == 4


def test_a_log_of_requests_is_billed_once(tmp_path: Path) -> None:
    messages = openai(BIG)
    requests = [{"messages": messages[:count]} for count in range(1, len(messages) + 1)]
    log = saved(tmp_path / "log.json", [*requests, {"messages": openai("another")}, requests[-1]])

    logged = facts(log)

    once = facts(saved(tmp_path / "once.json", [messages, openai("another"), messages]))
    assert logged["beginnings_left_out"] == len(messages) - 1
    assert logged["total"] == once["total"]
    assert once["beginnings_left_out"] == 0
    assert f"3 conversations ({len(messages) - 1} beginnings of them left out), 6 turns" in run("replay", log).output


def test_the_last_request_of_a_log_was_sent_to_its_end(tmp_path: Path) -> None:
    messages = openai(BIG)
    last = max(number for number, message in enumerate(messages) if message["role"] == "tool") + 1
    request = {"model": "gpt-4.1", "tools": [], "messages": messages[:last]}
    log = saved(tmp_path / "log.json", [{**request, "messages": messages[: last - 1]}, request])
    answered = saved(tmp_path / "answered.json", [{**request, "messages": messages[: last + 1]}])

    assert facts(log)["turns"] == facts(answered)["turns"]
    assert facts(log)["total"]["without"] == facts(answered)["total"]["without"]
    assert facts(saved(tmp_path / "list.json", [messages[:last]]))["turns"] == facts(log)["turns"] - 1


def test_a_transcript_that_is_named_twice_is_billed_once(big: Path) -> None:
    assert facts(big, big.parent / "." / big.name) == facts(big)
    assert facts(big, big.parent) == facts(big.parent, big) == facts(big)


def test_the_page_never_overwrites_a_message_of_a_session(tmp_path: Path) -> None:
    session(tmp_path / "sessions", strands(BIG))
    message = next((tmp_path / "sessions").rglob("message_0.json"))
    before = message.read_bytes()

    assert run("replay", tmp_path / "sessions", "--html", message).exit_code == 2
    assert message.read_bytes() == before
    assert run("replay", tmp_path / "sessions", "--html", tmp_path / "sessions" / "page.html").exit_code == 0


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_the_page_never_overwrites_a_transcript_in_a_folder(name: str, big: Path) -> None:
    transcript = big.rename(big.parent / name)
    before = transcript.read_bytes()

    assert run("replay", transcript.parent, "--html", transcript).exit_code == 2
    assert transcript.read_bytes() == before


def test_results_that_were_already_offloaded_are_counted(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.json", strands("short", coatcheck={}))

    assert facts(path)["already_offloaded"] == 1
    assert "1 tool result, 1 of them offloaded already" in run("replay", path).output


def test_a_recording_that_has_the_tool_pays_for_no_second_definition(tmp_path: Path) -> None:
    tools = [{"type": "function", "function": {"name": RETRIEVAL_TOOL}}]
    offering = saved(tmp_path / "offering.json", {"tools": tools, "messages": openai("short")})
    using = saved(tmp_path / "using.json", strands("short", coatcheck={}))

    saved_tokens = [row["tokens_saved"] for path in (offering, using) for row in facts(path)["total"]["thresholds"]]
    assert set(saved_tokens) == {0}


def test_a_long_list_is_cut_in_the_middle_on_the_screen_and_whole_as_json(tmp_path: Path) -> None:
    small = [{"id": f"small-{number}", "messages": openai("x")} for number in range(40)]
    large = {"id": "large", "messages": openai(BIG)}
    long = {"id": "long", "messages": [*openai("y"), *openai("y"), *openai("z")]}
    path = saved(tmp_path / "a.json", [*small, large, long])

    rows = run("replay", path).output.partition("by conversation")[2].splitlines()
    names = [row.split()[0] for row in rows if row.lstrip().startswith(("small", "large", "long"))]

    assert (len(names), names[0], names[-1]) == (15, "large", "long")
    assert any("and 27 between these: --json and --html have them all" in row for row in rows)
    assert len(facts(path)["conversations"]) == 42


def test_names_from_recordings_are_neither_markup_nor_terminal_commands(tmp_path: Path) -> None:
    messages = openai(BIG, name="[bold]\x1b[2J[/x]\n")

    ran = run("replay", saved(tmp_path / "a.json", {"id": "one\n all\r\n 99%", "messages": messages}))

    assert ran.exit_code == 0
    assert "\x1b[2J" not in ran.output
    assert "[bold]·[2J[/x]" in ran.output
    assert "one  all  99%" in ran.output


@pytest.mark.parametrize("name", ["page.html", "no/such/folder/page.html"])
def test_the_page_is_written_or_its_missing_folder_is_named(name: str, big: Path, tmp_path: Path) -> None:
    ran = run("replay", big, "--html", tmp_path / name)

    written = (tmp_path / name).is_file()
    assert ran.exit_code == (0 if written else 2)
    assert written == ("/" not in name)
    if written:
        size = (tmp_path / name).stat().st_size
        assert f"Page of {size / 1_000:,.0f} KB: {tmp_path / name}" in ran.output
    else:
        assert f"{(tmp_path / name).parent} is not a folder" in ran.stderr


def plainly(screen: str) -> str:
    """Return what a screen shows as one line, without colours or line breaks."""
    return " ".join(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen).split())


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of POSIX")
def test_it_shows_its_progress_at_a_terminal(big: Path) -> None:
    seen = at_terminal("replay", big)

    assert seen.exit_code == 0
    assert "Replaying" in seen.screen
    assert "Trying other previews" in seen.screen
    assert f"max_result_tokens={facts(big)['total']['best_threshold']} with" in plainly(seen.screen)


def test_a_page_that_cannot_be_written_is_reported_after_the_tables(big: Path, tmp_path: Path) -> None:
    ran = run("replay", big, "--html", tmp_path / ("a" * 300))

    assert ran.exit_code == 2
    assert re.search(r"coatcheck: .*/a{300} cannot be written: \w+", ran.stderr)
    assert "saves most" in ran.stdout


def test_json_and_page_go_together(big: Path, tmp_path: Path) -> None:
    assert facts(big, "--html", tmp_path / "page.html") == facts(big)
    assert (tmp_path / "page.html").is_file()


@pytest.mark.parametrize("content", ["", "[]", "{}", "nothing", '[{"role": "alien", "content": ""}]', "\x00"])
def test_a_file_that_is_not_a_transcript_is_reported_on_one_line(content: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(content)

    ran = run("replay", tmp_path / "a")

    assert ran.exit_code == 2
    assert ran.stderr.startswith("coatcheck: ")
    assert ran.stderr.count("\n") == 1
    assert "Accepted: OpenAI messages, Anthropic messages, LangChain messages" in ran.stderr
    assert not ran.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("missing.json",),
        ("{big}", "--threshold", "99"),
        ("{big}", "--retrieval-tokens", "255"),
        ("{big}", "--price", "0"),
        ("{big}", "--retrievals", "-1"),
        ("{big}", "--retrievals", "101"),
        ("{big}", "--price", "-1"),
        ("{big}", "--price", "nan"),
        ("{big}", "--price", "inf"),
        ("{big}", "--price", "1e308"),
        ("{big}", "--price", "1", "--cached-price", "inf"),
        ("{big}", "--cached-price", "1"),
        ("{big}", "--written-price", "1"),
        ("{big}", "--price", "1", "--written-price", "inf"),
        ("{big}", "--prefix-tokens", "-1"),
        ("{big}", "--prefix-tokens", "1" + 400 * "0"),
        ("{big}", "--threshold", "1" + 400 * "0"),
        ("{big}", "--preview-tokens", "-1"),
        ("{big}", "--html", "{big}"),
    ],
)
def test_wrong_arguments_end_with_2_and_the_usage(arguments: tuple[str, ...], big: Path) -> None:
    ran = run("replay", *(argument.format(big=big) for argument in arguments))

    assert ran.exit_code == 2
    assert "Usage: " in ran.stderr
    assert "Traceback" not in ran.stderr
    assert json.loads(big.read_text()) == openai(BIG)


def test_a_result_that_cannot_be_offloaded_does_not_distort_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def offload(offloader: Offloader, blocks: Sequence[Block], **details: Any) -> Outcome:  # noqa: ANN401 - passed on
        if blocks == (TextBlock(odd),):
            raise RuntimeError
        return as_it_is(offloader, blocks, **details)

    as_it_is, odd = Offloader.offload, f"odd\n{BIG}"
    monkeypatch.setattr(Offloader, "offload", offload)
    found = facts(saved(tmp_path / "a.json", [*openai(odd), *openai(BIG)]), "--threshold", "1000")["total"]

    assert found["thresholds"][0]["offloaded"] == 1
    assert "a result of 'search' was replayed as it is: RuntimeError" in caplog.text


def test_a_file_that_cannot_be_read_is_named_and_does_not_distort_the_others(tmp_path: Path, big: Path) -> None:
    odd, expected = tmp_path / "odd.json", facts(big)
    odd.write_text("{")
    alone, ran = run("replay", odd), run("replay", odd, big, "--json")

    assert alone.exit_code == 2
    assert ran.exit_code == 0
    assert ran.stderr.startswith(f"coatcheck: left out: {odd} is neither JSON nor JSON Lines")
    assert json.loads(ran.stdout) == {**expected, "unreadable_left_out": 1}
    assert "1 tool result; 1 more could not be read\n" in run("replay", odd, big).output


def test_the_accepted_formats_are_named_once_for_all_files_that_cannot_be_read(tmp_path: Path, big: Path) -> None:
    odd = [tmp_path / f"odd_{number}.json" for number in range(3)]
    for each in odd:
        each.write_text("{")

    told = run("replay", *odd, big).stderr.splitlines()

    assert [
        line.startswith(f"coatcheck: left out: {each} is neither") for line, each in zip(told, odd, strict=False)
    ] == ([True] * 3)
    assert [line for line in told if ACCEPTED in line] == [f"coatcheck: accepted: {ACCEPTED}"]


@pytest.mark.parametrize(
    ("raised", "said"),
    [(InvalidRequest("odd.json: nested too deeply"), "odd.json: nested too deeply"), (KeyError("x"), "KeyError: 'x'")],
)
def test_a_conversation_that_cannot_be_replayed_is_named_and_left_out(
    raised: Exception, said: str, tmp_path: Path, big: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def report(counted: CountedConversation, *details: Any, **more: Any) -> ConversationReport:  # noqa: ANN401 - passed on
        if counted.conversation.name == "odd.json":
            raise raised
        return conversation_report(counted, *details, **more)

    odd, expected = saved(tmp_path / "odd.json", openai(f"odd\n{BIG}")), facts(big)
    monkeypatch.setattr(measure, "conversation_report", report)
    alone, ran = run("replay", odd), run("replay", odd, big, "--json")

    assert alone.exit_code == 2
    assert re.fullmatch(rf"coatcheck: .*odd\.json: .*{said.rpartition(': ')[2]}\n", alone.stderr)
    assert ran.exit_code == 0
    assert ran.stderr.startswith("coatcheck: left out: ")
    assert ran.stderr.endswith(f"{said}\n")
    assert json.loads(ran.stdout) == {**expected, "unreadable_left_out": 1}
    assert "1 tool result; 1 more could not be read\n" in run("replay", odd, big).output
