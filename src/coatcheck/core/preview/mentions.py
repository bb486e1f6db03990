"""Patterns for text that mentions errors where none has happened: source code that reports them, and prose about them.

A problem that is taken for a mention is not shown, which is worse than a false alarm. So a pattern is here only if the
rest of its line shows that it is code, a comment or a sentence, and no tool is known to report a problem in this form.
"""

from __future__ import annotations

__all__ = ("MENTION",)

_WORD = "(?:FATAL|CRITICAL|PANIC|SEVERE|ERROR|FAILED|FAILURE|FAIL)"
_LEVEL = "(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|SEVERE)"
_ARGUMENT = r"[a-z\d_]\((?:[^()\"'\n]*[,(] ?)?"
"""What comes before an argument of a call. In prose, a space comes before a bracket; a sign of trouble ends in
capitals."""

_TEXT = r"(?:\"[^\"\n]*\"?|'[^'\n]*'?)"
_FORMAT = r"(?:%[dis]\b|\{\w*\})"
_AS_CODE = r"[^\n]*[;,({\\]\s*$"
"""How a line of code ends. A report of a problem hardly ever ends so."""

_AS_A_SENTENCE = r"[^\n:\[|]*[a-z.,;)]\s*$"
"""How a line of a comment ends. A report of a problem ends with its verdict or after a colon instead."""

_IN_CODE = (
    rf"^\s*[\"']+{_WORD}\.?[\"']+,?\s*$|^\s*(?:export )?type [A-Z]\w* =[^\n]*[|;][^\n]*",  # a lone value, a type
    rf"^\s*(?:if|elif|else if|while|return)\b[^\n]* [=!]=+ [\"']{_WORD}[\"']",  # a comparison
    rf"^\s*(?:[a-z]+ )?{_WORD} = (?:[\"']\w+[\"'],?;?|\d+,|[A-Z]+)\s*$|^const {_WORD}: \w+;\s*$",
    rf"^\s*(?:def |self\.)[\w.]+\((?:\w+=)?{_WORD}(?:, \*{{0,2}}\w+)*\):?\s*$",  # in Python
    rf"{_ARGUMENT}{_WORD}[,)]{_AS_CODE}|{_ARGUMENT}{_WORD},\s*$|\b{_WORD}\([\"'(*&]{_AS_CODE}",  # an argument
    rf"{_ARGUMENT}[a-z]{{0,2}}{_TEXT}|\w \([^()\"'\n]+, \"{_WORD}\"",  # a string in a call, also in GNU style
    rf"^#\s*(?:define|undef) {_WORD}\b[^\n]*|^\s*(?:import|return) {_WORD}\W*$|[$]{{?{_WORD}\b|\b{_WORD}, [$][a-z_]",
    rf"\w\.{_WORD}(?:[,;)][^\n]*)?[;,({{\\]\s*$|^\s*[?:] [\w.]+\.{_WORD}\s*$",  # a member of an enum
    rf"\w\.{_WORD}=\"\w+\"[,;)}}]",  # a member of an enum in minified JavaScript, which pages contain
    rf"\blogging\.{_WORD}\b|^\s*case [\w.]+\.{_WORD}:|^\s+\w+ = [\w.]+\.{_WORD};?\s*$",  # a qualified name
    r"^[^\n]*[$][$]\w[^\n]*[;\\]\s*$",  # a recipe in a makefile
    rf"(?:echo|ECHO|\bprintf?)(?: [^\s\"'`]+)*(?: \\?{_TEXT})+|^msg(?:id|str) [^\n]*",  # printed, or translated
    rf"(?:^|[\s(,=\[f])(?:\"[^\"\n]*{_FORMAT}[^\"\n]*|'[^'\n]*{_FORMAT}[^'\n]*)",
    r"^[a-z_]\w*(?:Error|Exception)$",  # a function in a list of names
    # A comment. The character after ``//`` tells it from a target of Bazel.
    rf"^\s*//[ !/][^\n]*[a-z.,;)]\s*$|^\s*# +[A-Z]?[a-z_]{_AS_A_SENTENCE}",
    rf"^(?:  |\t)* \*+ +[A-Z]?[a-z]* \w+ [a-z]{_AS_A_SENTENCE}",  # in a C comment; the star of a list is at the margin
)
_IN_PROSE = (
    rf"\b{_LEVEL}(?:[\"'`]?(?:[,|/] ?| and | or )[\"'`]?{_LEVEL}\b){{2,}}|\b(?:severity|level) '{_WORD}'",
    rf"\b{_LEVEL}, (?:and|or) {_LEVEL}\b",
    rf"\bneither [\"'`]?{_WORD}\b|\bnor [\"'`]?{_WORD}\b|\b{_WORD}[\"'`]? nor |\bas `{_WORD}`",
    rf"^\W*(?:If|When) [^.|>\n]* (?:is|are) {_WORD}, [a-z]",
    rf"^\W*{_WORD} ?[:=] *0\s*$|[\"']{_WORD}[\"']: ?(?:0|false|False|null|None|\[\]|{{}})(?:[,}}\s]|$)",  # no errors
    r"\bOOMKilled[\"']?: ?(?:false|False)\b",
    rf"^\W*Expected: {_WORD} (?:with|because) [^\n]*",  # a step of a plan
    r"\.html?#[\w.-]+",  # a section in the URL of a page
    r"[\"'`]Segmentation fault[\"'`]|\b(?:the|for|[Ff]ix) [45]\d\d errors?\b",
    r"\b(?:[Ff]ix(?:e[sd])?|[Aa]void|prevent|lead to|result in|demonstrate) [^:\n]*segmentation faults?\b",
)

MENTION = f"(?m){'|'.join((*_IN_CODE, *_IN_PROSE))}"
"""For RE2. The rest of a line, without these, shows whether the line reports an error."""
