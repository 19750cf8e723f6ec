"""Runtime: processes, exit handling, files, memory, devices, progress bars."""
