"""Claims under test: `catalogue` lists them, `decide` turns rules into verdicts. Rules of data that
kinds share have a module each; others stand in the file of their kind."""
