"""What speaks of errors where none has happened: source code that reports them, and prose about them."""

from __future__ import annotations

__all__ = ("MENTION",)

_WORD = "(?:FATAL|CRITICAL|PANIC|SEVERE|ERROR|FAILED|FAILURE|FAIL)"
_LEVEL = "(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|SEVERE)"
_ARGUMENT = r"\w\((?:[^()\"'\n]*[,(] ?)?"
"""What is before an argument of a call. A word of prose has a blank before its bracket."""

_TEXT = r"(?:\"[^\"\n]*\"?|'[^'\n]*'?)"
_FORMAT = r"(?:%[dis]\b|\{\w*\})"

_IN_CODE = (
    rf"^\s*[\"']+{_WORD}\.?[\"']+,?\s*$|^\s*(?:export )?type \w+ =[^\n]*",  # a value of an enumeration, a type
    rf" [=!]= [\"']{_WORD}[\"']|\b{_WORD}(?: ?= ?[\"']\w+[\"']| = \d+,\s*$|: \w+;\s*$)",  # compared, declared
    rf"{_ARGUMENT}{_WORD}[,)]|{_ARGUMENT}[a-z]{{0,2}}{_TEXT}|\b{_WORD}\([\"'(*&]",  # called with it, and it is called
    rf"\b(?:define|function|import|return|undef) {_WORD}\b|[$]{{?{_WORD}\b|\w\.{_WORD}(?:[^\w:\n]|:?\s*$)",  # a name
    rf"\w \([^()\"'\n]+, \"{_WORD}\"|\b{_WORD}, [$][a-z_]",  # called in the style of GNU, said by a shell script
    r"^[^\n]*[$][$]\w[^\n]*[;\\]\s*$",  # a recipe of make
    rf"(?:echo|ECHO|\bprintf?)(?: [^\s\"'`]+)*(?: \\?{_TEXT})+|^msg(?:id|str) [^\n]*",  # shown, translated
    rf"(?:^|[\s(,=\[f])(?:\"[^\"\n]*{_FORMAT}[^\"\n]*|'[^'\n]*{_FORMAT}[^'\n]*)",
    r"^\s*error:\s*$|^[a-z_]\w*(?:Error|Exception)$",  # a label of C, a function in a list of names
    r"^\s*(?://|# +[A-Z]?[a-z_])[^\n]*",  # a comment: the summary of automake has ``# FAIL: 1``
    r"^(?:  |\t)* \*+ +[A-Z]?[a-z]* \w+ [a-z][^\n]*",  # in a comment of C: the star of a list is at the margin
)
_IN_PROSE = (
    rf"{_LEVEL}[\"'`]?[,|/] ?[\"'`]?{_WORD}\b|\b{_WORD}[\"'`]?[,|/] ?[\"'`]?{_LEVEL}",
    rf"\b(?:of|n?or|neither|than|false) [\"'`]?{_WORD}\b|\b{_WORD}[\"'`]? n?or |`{_WORD}`",
    rf"\b(?:If|When) [^.\n]*\b{_WORD}\b",
    r"[\"'`]Segmentation fault[\"'`]|\b(?:the|for|[Ff]ix) [45]\d\d errors?\b",
    r"\b(?:[Ff]ix\w*|[Aa]void|prevent|cause|causing|lead to|result in|demonstrate)\b[^:\n]* segmentation faults?\b",
)

MENTION = f"(?m){'|'.join((*_IN_CODE, *_IN_PROSE))}"
"""For RE2. Whether a line tells of an error is to be seen in what is left of it without these."""
