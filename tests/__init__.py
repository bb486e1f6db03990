"""The tests. A package, so that helpers are found here and in no other project's `tests`."""
