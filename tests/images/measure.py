"""Runs a command some times and prints what it cost: median milliseconds of CPU, and its peak memory in KiB.

    /usr/bin/python3 measure.py RUNS COMMAND...
"""

import os
import statistics
import sys

costs, peaks = [], []
for _ in range(int(sys.argv[1]) + 1):
    child = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0), (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)])
    _, status, usage = os.wait4(child, 0)
    assert status == 0, (status, sys.argv)
    costs.append((usage.ru_utime + usage.ru_stime) * 1000)
    peaks.append(usage.ru_maxrss)
# The first run warms up.
print(statistics.median(costs[1:]), max(peaks))
