"""Claims of the paper and what decides them: `catalogue` lists each once, `decide` turns a measured
one into a line of summary.json, the others measure on one kind of data each."""
