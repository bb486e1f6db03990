"""What is measured: one module for each kind of work, each with a function ``measure`` that fills the results."""
