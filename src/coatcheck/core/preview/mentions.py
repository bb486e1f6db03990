"""What speaks of errors where none has happened: source code that reports them, and prose about them.

A problem that is taken for a mention is not named, which is worse than a false alarm. So a form is here only if the
rest of its line shows that it is code, a comment or a sentence, and no tool is known to report a problem in it.
"""

from __future__ import annotations

__all__ = ("MENTION",)

_WORD = "(?:FATAL|CRITICAL|PANIC|SEVERE|ERROR|FAILED|FAILURE|FAIL)"
_LEVEL = "(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|SEVERE)"
_ARGUMENT = r"[a-z\d_]\((?:[^()\"'\n]*[,(] ?)?"
"""What is before an argument of a call. In prose, a space comes before a bracket, and a sign ends in capitals."""

_TEXT = r"(?:\"[^\"\n]*\"?|'[^'\n]*'?)"
_FORMAT = r"(?:%[dis]\b|\{\w*\})"
_AS_CODE = r"[^\n]*[;,({\\]\s*$"
"""How a line of code ends, and a report hardly ever does."""

_AS_A_SENTENCE = r"[^\n:\[|]*[a-z.,;)]\s*$"
"""How a line of a comment ends. A report does not end so, but with its verdict, or after a colon."""

_IN_CODE = (
    rf"^\s*[\"']+{_WORD}\.?[\"']+,?\s*$|^\s*(?:export )?type [A-Z]\w* =[^\n]*[|;][^\n]*",  # a lone value, a type
    rf"^\s*(?:if|elif|else if|while|return)\b[^\n]* [=!]=+ [\"']{_WORD}[\"']",  # compared
    rf"^\s*(?:[a-z]+ )?{_WORD} = (?:[\"']\w+[\"'],?;?|\d+,|[A-Z]+)\s*$|^const {_WORD}: \w+;\s*$",
    rf"^\s*(?:def |self\.)[\w.]+\((?:\w+=)?{_WORD}(?:, \*{{0,2}}\w+)*\):?\s*$",  # Python's
    rf"{_ARGUMENT}{_WORD}[,)]{_AS_CODE}|{_ARGUMENT}{_WORD},\s*$|\b{_WORD}\([\"'(*&]{_AS_CODE}",  # called with it
    rf"{_ARGUMENT}[a-z]{{0,2}}{_TEXT}|\w \([^()\"'\n]+, \"{_WORD}\"",  # a text in a call, GNU's style included
    rf"^#\s*(?:define|undef) {_WORD}\b[^\n]*|^\s*(?:import|return) {_WORD}\W*$|[$]{{?{_WORD}\b|\b{_WORD}, [$][a-z_]",
    rf"\w\.{_WORD}(?:[,;)][^\n]*)?[;,({{\\]\s*$|^\s*[?:] [\w.]+\.{_WORD}\s*$",  # a member of an enumeration
    rf"\w\.{_WORD}=\"\w+\"[,;)}}]",  # a member of one in minified JavaScript, as pages contain it
    rf"\blogging\.{_WORD}\b|^\s*case [\w.]+\.{_WORD}:|^\s+\w+ = [\w.]+\.{_WORD};?\s*$",  # a name
    r"^[^\n]*[$][$]\w[^\n]*[;\\]\s*$",  # a recipe of make
    rf"(?:echo|ECHO|\bprintf?)(?: [^\s\"'`]+)*(?: \\?{_TEXT})+|^msg(?:id|str) [^\n]*",  # shown, translated
    rf"(?:^|[\s(,=\[f])(?:\"[^\"\n]*{_FORMAT}[^\"\n]*|'[^'\n]*{_FORMAT}[^'\n]*)",
    r"^[a-z_]\w*(?:Error|Exception)$",  # a function in a list of names
    # A comment; the targets of Bazel begin with ``//``.
    rf"^\s*//[ !/][^\n]*[a-z.,;)]\s*$|^\s*# +[A-Z]?[a-z_]{_AS_A_SENTENCE}",
    rf"^(?:  |\t)* \*+ +[A-Z]?[a-z]* \w+ [a-z]{_AS_A_SENTENCE}",  # in one of C: the star of a list is at the margin
)
_IN_PROSE = (
    rf"\b{_LEVEL}(?:[\"'`]?(?:[,|/] ?| and | or )[\"'`]?{_LEVEL}\b){{2,}}|\b(?:severity|level) '{_WORD}'",
    rf"\b{_LEVEL}, (?:and|or) {_LEVEL}\b",
    rf"\bneither [\"'`]?{_WORD}\b|\bnor [\"'`]?{_WORD}\b|\b{_WORD}[\"'`]? nor |\bas `{_WORD}`",
    rf"^\W*(?:If|When) [^.|>\n]* (?:is|are) {_WORD}, [a-z]",
    rf"^\W*{_WORD} ?[:=] *0\s*$|[\"']{_WORD}[\"']: ?(?:0|false|False|null|None|\[\]|{{}})(?:[,}}\s]|$)",  # none
    r"\bOOMKilled[\"']?: ?(?:false|False)\b",
    rf"^\W*Expected: {_WORD} (?:with|because) [^\n]*",  # a step of a plan
    r"\.html?#[\w.-]+",  # a section of a page, in its address
    r"[\"'`]Segmentation fault[\"'`]|\b(?:the|for|[Ff]ix) [45]\d\d errors?\b",
    r"\b(?:[Ff]ix(?:e[sd])?|[Aa]void|prevent|lead to|result in|demonstrate) [^:\n]*segmentation faults?\b",
)

MENTION = f"(?m){'|'.join((*_IN_CODE, *_IN_PROSE))}"
"""For RE2. What is left of a line without these shows whether the line tells of an error."""
