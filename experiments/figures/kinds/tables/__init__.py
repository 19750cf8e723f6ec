"""The paper's tables: our numbers beside the paper's, as text, as numbers and as a picture.

A kind of table reads records into a `Table`; one writer makes Markdown of it, one renderer a
figure, and its cells are the rows of the CSV.
"""
