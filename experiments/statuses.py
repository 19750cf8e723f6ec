"""Exit statuses of the commands; 0 is done."""

import signal

BAD_INPUT = 2  # the config or the arguments do not fit
DIVERGED = 3  # nothing failed but trainings that diverge, and would again
STOPPED = 128 + signal.SIGTERM  # asked to stop, and saved
