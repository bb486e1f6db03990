"""Strictness for every test, and nothing else: no fixtures, no helpers.

Hypothesis tries the same examples in every run, so that a red test means that the change is wrong. Look for new ones
with ``HYPOTHESIS_PROFILE=explore``.
"""

from __future__ import annotations

import os

from hypothesis import settings

# No deadline: the first call in a process loads a vocabulary, and a busy machine is no failure.
settings.register_profile("same", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=2_000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
