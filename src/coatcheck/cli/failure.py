"""How a command ends: its exit code, and what went wrong, on one line for people, or one for each mistake in a file.

Every command is wrapped here, so that an error of the user, a storage or a closed pipe never shows a traceback. Our own
bugs do, without the values of variables.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import contextmanager, suppress
from functools import wraps
from typing import TYPE_CHECKING, NoReturn, ParamSpec

from coatcheck.cli.printing import complain
from coatcheck.core.errors import CoatcheckError, CorruptContent, InvalidRequest, ReferenceNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ("COULD_NOT_RUN", "DONE", "NOT_AS_EXPECTED", "CannotRun", "reported", "telling_each_mistake")

Arguments = ParamSpec("Arguments")

DONE, NOT_AS_EXPECTED, COULD_NOT_RUN = 0, 1, 2
"""The exit codes of every command. Typer uses the last one for wrong arguments too."""

READER_WENT_AWAY = 141
"""What shells report for a program that wrote to a closed pipe: 128 plus the number of SIGPIPE."""

_ON_WINDOWS = os.name == "nt"


class CannotRun(Exception):
    """Something that the command needs is missing or wrong. The message says what, and what to do.

    Each argument gets a line of its own.
    """


def reported(command: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Wrap ``command`` to report an error on standard error, and to exit with the matching code."""

    @wraps(command)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()  # here, because a failure while the interpreter exits cannot be reported
        except (ReferenceNotFound, CorruptContent) as error:
            _end(NOT_AS_EXPECTED, str(error))
        except CannotRun as error:
            _end(COULD_NOT_RUN, *map(str, error.args))
        except CoatcheckError as error:
            _end(COULD_NOT_RUN, str(error))
        except RuntimeError as error:
            if not _lacks_home(error):
                raise
            _end(COULD_NOT_RUN, f"{str(error).rstrip('.')}; set HOME to a folder that can be written")
        except OSError as error:  # a storage raises StorageError; an error without a file is of a standard stream
            _give_up_output()
            if _reader_went_away(error):
                raise SystemExit(READER_WENT_AWAY) from None
            _end(COULD_NOT_RUN, f"{error.filename or 'standard input or output failed'}: {error.strerror}")

    return run


@contextmanager
def telling_each_mistake() -> Iterator[None]:
    """Give each mistake in a coatcheck.toml, which the block reads, a line of its own.

    Raises:
        CannotRun: the file cannot be read, or is wrong.

    """
    try:
        yield
    except InvalidRequest as error:
        raise CannotRun(*str(error).split("\n")) from None


def _end(code: int, *messages: str) -> NoReturn:
    for message in messages:
        complain(f"coatcheck: {message}")
    raise SystemExit(code) from None


def _lacks_home(error: RuntimeError) -> bool:
    """Return whether an error is pathlib's for a user without HOME and without an entry in the user database."""
    return "determine home directory" in str(error) or "determine the home directory" in str(error)


def _reader_went_away(error: OSError) -> bool:
    """Return whether a pipe was closed by its reader. On Windows, Python has no separate error for that."""
    return isinstance(error, BrokenPipeError) or (
        _ON_WINDOWS and error.errno == errno.EINVAL and error.filename is None
    )


def _give_up_output() -> None:
    """Discard what is still buffered: the interpreter would write it as it exits, and complain."""
    with suppress(OSError):  # a test's standard output is not a file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
