"""One file per figure and table of the papers, and what they share; README.md has the results."""
