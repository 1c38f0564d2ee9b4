"""Starts processes that do not end by themselves, and says their pids: one with an empty environment, one with a
session of its own, and a daemon. Or ends as `op` says."""

import os
import subprocess
import time

ELSEWHERE = "setsid /bin/sleep 600 >/dev/null 2>&1 & echo $!"


def handle(data, context):
    if data is None:
        return None
    op = data[0]["body"]["op"]
    if op == "exit":
        os._exit(0)
    if op == "hang":
        time.sleep(600)
    child = subprocess.Popen(["/bin/sleep", "600"], env={})
    session = subprocess.Popen(["/bin/sleep", "600"], start_new_session=True)
    daemon = subprocess.check_output(["/bin/sh", "-c", ELSEWHERE])
    return [{"pids": [child.pid, session.pid, int(daemon)]}]
