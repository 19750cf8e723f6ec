"""One file per figure and table of the papers, and what they share; results/ has what came out."""
