"""What is measured: one module for each kind of work, with a function ``measure`` that fills the results."""
