"""The report: one HTML page of all that a work folder holds, or of two beside each other."""
