"""The tests. They are a package, so that helpers are imported from here and not from another project's `tests`."""
