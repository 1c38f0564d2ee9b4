# Runs TorchServe's worker with asyncCommunication: the file in the first argument, with the other arguments.
# Its event loop sends items while a thread of it sends responses. A large sendall is several writes to the
# socket, so bytes of one could come within the other's (ts/async_service.py). Here they come after.
import os
import runpy
import socket
import sys
import threading

worker = sys.argv.pop(1)
sys.argv[0] = worker
sys.path[0] = os.path.dirname(os.path.abspath(worker))


class WholeFrames(socket.socket):
    def __init__(self, other):
        super().__init__(other.family, other.type, other.proto, fileno=other.detach())
        self._sending = threading.Lock()

    def sendall(self, *args):
        with self._sending:
            super().sendall(*args)


accept = socket.socket.accept


def accept_whole_frames(self):
    connection, address = accept(self)
    socket.socket.accept = accept
    return WholeFrames(connection), address


socket.socket.accept = accept_whole_frames
runpy.run_path(worker, run_name="__main__")
