"""Finds the smallest threshold in a ``coatcheck.toml``, in a tenth of the time of a full read. Smaller results stay.

The file is not validated here. If anything in it is not simple, the answer is 0, and ``coatcheck.cli.hook_settings``
reads the file.
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
    """Return the smallest threshold that a file sets for any tool, or ``default`` where it sets none; 0 if unclear.

    Raises:
        Exception: the file cannot be read. Any error of files, of TOML, or of a value of the wrong type.

    """
    if not os.path.isfile(path):  # noqa: PTH113 - pathlib is not loaded yet; opening a pipe would wait for a writer
        return 0
    with open(path, "rb") as file:  # noqa: PTH123 - as above
        values = tomllib.load(file)
    tables = values.get("tools", {}).values()
    if any("always" in table for table in tables):
        return 0
    least: int = min(each.get("max_result_tokens", default) for each in (values, *tables))
    return least
