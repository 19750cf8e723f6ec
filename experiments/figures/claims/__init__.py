"""Claims under test: `catalogue` lists them, `decide` turns rules into verdicts, and a module for
each kind of data has the rules."""
