"""Programs for the developers of the project, called from the folder of pyproject.toml."""
