"""Whether a result stays whatever a ``coatcheck.toml`` says: a check that takes a tenth of the time of a full read.

The file is neither checked nor understood here. Where anything in it is not simple, the answer is no, and
``coatcheck.cli.hook_settings`` reads it.
"""

from __future__ import annotations

import os
import sys

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ("least_tokens",)


def least_tokens(path: str, *, default: int) -> int:
    """Return the smallest threshold that a file sets for any tool, ``default`` among them; 0 if that is not plain.

    Raises:
        Exception: it cannot be read; any error of files, of TOML, or of a value of the wrong type.

    """
    if not os.path.isfile(path):  # noqa: PTH113 - pathlib is not loaded yet; to open a pipe would wait for a writer
        return 0
    with open(path, "rb") as file:  # noqa: PTH123 - as above
        values = tomllib.load(file)
    tables = values.get("tools", {}).values()
    if any("always" in table for table in tables):
        return 0
    least: int = min(each.get("max_result_tokens", default) for each in (values, *tables))
    return least
