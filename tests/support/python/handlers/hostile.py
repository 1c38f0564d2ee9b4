"""Tries what the body asks for and tells how far it came."""

import ctypes
import errno
import os
import resource
import socket
import subprocess
import sys
import tempfile

LIBC = ctypes.CDLL(None, use_errno=True)


def refused(condition, why):
    if condition:
        raise OSError(ctypes.get_errno() or errno.EPERM, why)


def environment(attack, context):
    return os.environ["PLANTED_SECRET"]


def header(attack, context):
    return context.get_request_header(0, "Authorization") or {}["not there"]


def read(attack, context):
    with open(attack["path"], "rb") as file:
        return file.read(20).decode("latin1")


def list_(attack, context):
    return str(len(os.listdir(attack["path"])))


def write(attack, context):
    with open(attack["path"], "w", encoding="utf-8") as file:
        file.write("hostile")
    return "written"


def scratch(attack, context):
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"x")
    return tempfile.gettempdir()


def memory(attack, context):
    with open(f"/proc/{attack['pid']}/maps", encoding="latin1") as file:
        start = int(file.readline().split("-")[0], 16)
    with open(f"/proc/{attack['pid']}/mem", "rb", 0) as file:
        file.seek(start)
        return str(len(file.read(4)))


def trace(attack, context):
    # PTRACE_SEIZE does not stop the process. PTRACE_DETACH needs a stopped one, so a child does it.
    script = "import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), None, None) != 0)"
    refused(subprocess.run([sys.executable, "-c", script, str(attack["pid"])], check=False).returncode, "refused")
    return "traced"


def vm_read(attack, context):
    class Piece(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]

    here = ctypes.create_string_buffer(4)
    local = Piece(ctypes.cast(here, ctypes.c_void_p), 4)
    remote = Piece(ctypes.c_void_p(0x1000), 4)
    got = LIBC.process_vm_readv(attack["pid"], ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
    refused(got < 0 and ctypes.get_errno() != errno.EFAULT, "refused")
    return "allowed"


def limits(attack, context):
    return str(resource.prlimit(attack["pid"], resource.RLIMIT_NOFILE))


def mode(attack, context):
    os.chmod(attack["path"], attack["count"])
    return "changed"


def signal(attack, context):
    os.kill(attack["pid"], 0)
    return "true"


def tcp(attack, context):
    socket.create_connection(("127.0.0.1", attack["port"])).close()
    return "connected"


def unix(attack, context):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(attack["path"])
    return "connected"


def udp(attack, context):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.sendto(b"x", ("127.0.0.1", attack["port"]))
    return "sent"


def files(attack, context):
    opened = []
    try:
        while len(opened) < attack["count"]:
            opened.append(os.open("/dev/null", os.O_RDONLY))
        return f"{len(opened)} open"
    finally:
        for file in opened:
            os.close(file)


def processes(attack, context):
    children = []
    try:
        while len(children) < attack["count"]:
            children.append(subprocess.Popen(["/bin/sleep", "60"]))
        return f"{len(children)} started"
    finally:
        for child in children:
            child.kill()
            child.wait()


def allocate(attack, context):
    return f"{len(bytearray(b'x') * (attack['count'] << 20)) >> 20} MB"


def handle(data, context):
    if data is None:  # it is being loaded
        return None
    attack = data[0]["body"]
    name = {"list": "list_", "vm-read": "vm_read"}.get(attack["attack"], attack["attack"])
    try:
        return [{"got": globals()[name](attack, context)}]
    except OSError as error:
        return [{"stopped": errno.errorcode.get(error.errno, str(error))}]
    except (KeyError, MemoryError) as error:
        return [{"stopped": type(error).__name__}]
