"""Stands in for torchrun: so many processes, each in a session of its own, with the variables of a distributed run; one's end ends all."""

import os
import signal
import subprocess
import sys
import time


def main():
    arguments = sys.argv[1:]
    script = next(i for i, each in enumerate(arguments) if each.endswith(".py"))
    options = dict(zip(arguments[:script:2], arguments[1:script:2]))
    size = int(options["--nproc-per-node"])
    ranks = [start(rank, size, arguments[script:]) for rank in range(size)]

    def end(*_):
        for each in ranks:
            each.terminate()
        sys.exit(1)

    signal.signal(signal.SIGTERM, end)
    while any(each.poll() is None for each in ranks):
        if any(each.poll() for each in ranks):
            end()
        time.sleep(0.05)


def start(rank, size, command):
    env = {
        "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size, "MASTER_ADDR": "localhost", "MASTER_PORT": 0,
    }
    variables = {**os.environ, **{name: str(value) for name, value in env.items()}}
    return subprocess.Popen([sys.executable, "-u", *command], env=variables, start_new_session=True)


main()
