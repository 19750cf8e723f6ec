"""The machine below the science: processes, endings, files, memory, devices, progress bars."""
