"""Records into curves, grids, groups and rows of tables; nothing is drawn."""
