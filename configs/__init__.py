"""One file per figure and table of the papers, and the parts that they share."""
