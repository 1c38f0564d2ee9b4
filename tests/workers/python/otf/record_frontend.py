"""
Stands in for TorchServe's worker, to record what a frontend sends: one JSON line per message in the file RECORD_FILE, with the bytes as
base64. It answers every request with `ok`; a model with `steps` in its name goes on for one step more. When it is asked anything else, as
an interpreter, this one answers, under the name RECORDER.
"""

import base64
import json
import os
import socket
import struct
import subprocess
import sys

if not sys.argv[1].endswith("model_service_worker.py"):
    asked = subprocess.run([sys.executable, *sys.argv[1:]], stdout=subprocess.PIPE, check=True)
    print(asked.stdout.decode().replace(json.dumps(sys.executable), json.dumps(os.environ["RECORDER"])))
    sys.exit(0)

END = b"\xff\xff\xff\xff"


class Recorder:
    """Reads from a socket, and remembers the bytes of the present message."""

    def __init__(self, connection):
        self.connection = connection
        self.message = b""

    def read(self, size):
        data = b""
        while len(data) < size:
            part = self.connection.recv(size - len(data))
            if not part:
                sys.exit(0)
            data += part
        self.message += data
        return data

    def int(self):
        return struct.unpack("!i", self.read(4))[0]

    def field(self):
        return self.read(self.int())

    def list(self, fields):
        """Fields until the end of the list; how many entries."""
        count = 0
        while True:
            size = self.int()
            if size < 0:
                return count
            self.read(size)
            for _ in range(fields - 1):
                self.field()
            count += 1

    def done(self, model):
        line = {"model": model, "frame": base64.b64encode(self.message).decode()}
        with open(os.environ["RECORD_FILE"], "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self.message = b""


def text(value):
    return struct.pack("!i", len(value)) + value


def answer(request, mark):
    headers = struct.pack("!i", 0) if mark is None else struct.pack("!i", 1) + text(b"ts_stream_next") + text(mark)
    return text(request) + text(b"") + struct.pack("!i", 200) + text(b"") + headers + text(b"ok")


def mark_of(model, first):
    """Whether the request goes on."""
    if "steps" not in model:
        return None
    return b"true" if first else b"false"


def requests(recorder):
    """Ids, each with whether it brings its input."""
    found = []
    while True:
        size = recorder.int()
        if size < 0:
            return found
        name = recorder.read(size)
        recorder.list(2)
        found.append((name, recorder.list(3) > 0))


def main():
    path = sys.argv[sys.argv.index("--sock-name") + 1]
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(1)
    print("[PID]%d" % os.getpid(), flush=True)
    print("Torch worker started.", flush=True)
    connection, _ = server.accept()
    recorder = Recorder(connection)
    model = ""
    while True:
        if recorder.read(1) == b"L":
            model = recorder.field().decode()
            recorder.field()
            recorder.int()
            recorder.field()
            recorder.int()
            recorder.field()
            recorder.read(1)
            recorder.done(model)
            connection.sendall(struct.pack("!i", 200) + text(b"loaded model") + END)
            continue
        found = requests(recorder)
        recorder.done(model)
        answers = b"".join(answer(name, mark_of(model, first)) for name, first in found)
        connection.sendall(struct.pack("!i", 200) + text(b"Prediction success") + answers + END)


main()
