"""Reads frames from stdin with TorchServe's own codec and writes what it read, a line of JSON for each; bytes as hexadecimal."""

import io
import json
import sys

from ts.protocol.otf_message_handler import retrieve_msg


class Connection:
    def __init__(self, data):
        self.stream = io.BytesIO(data)

    def recv(self, length):
        return self.stream.read(length)


data = sys.stdin.buffer.read()
connection = Connection(data)
while connection.stream.tell() < len(data):
    _, message = retrieve_msg(connection)
    print(json.dumps(message, default=lambda value: bytes(value).hex()))
