"""Exit statuses of the commands; 0 is done."""

import signal

BAD_INPUT = 2  # the config or the arguments do not fit
STOPPED = 128 + signal.SIGTERM  # asked to stop, and saved
