"""What every storage on somebody else's client does with that client's errors: they become ``StorageError``.

Only that belongs here. ``FileStorage`` knows the errors of its disk and has a narrower way.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from coatcheck.core.errors import CoatcheckError, StorageError
from coatcheck.engine.execution import named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ("failing_as_storage_error",)


@contextmanager
def failing_as_storage_error(
    storage: object, doing: str, *, words: Callable[[Exception], str] = named
) -> Iterator[None]:
    """Run what is inside the ``with`` block; ``words`` says what of an error may be repeated.

    Raises:
        StorageError: what is inside raised something that is none of ours; ``__cause__`` is that.

    """
    try:
        yield
    except CoatcheckError:
        raise
    except Exception as error:
        msg = f"{storage!r} could not {doing}: {words(error)}"
        raise StorageError(msg) from error
