"""Starts the worker: ``python torchserve_ts/__main__.py --sock-type unix --sock-name PATH``.

It listens, prints ``Torch worker started.``, and takes the one connection of the server. It is started by its
file, so that nothing of the model's folder can take the place of the worker's own parts.
"""

from __future__ import annotations

import os
import sys


def _main() -> int:
    import logging
    import select
    import signal
    import socket

    from torchserve_ts.link import Link
    from torchserve_ts.worker import Worker

    address, max_frame_bytes, packages = _arguments(sys.argv[1:])
    rank = int(os.environ.get("RANK") or os.environ.get("LOCAL_RANK") or 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A forked child, such as a data loader, ends as any program does.
    os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))
    os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    for output in (sys.stdout, sys.stderr):
        reconfigure = getattr(output, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(line_buffering=True, errors="backslashreplace")
    logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO)

    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    umask = os.umask(0o077)
    listener.bind(address)
    os.umask(umask)
    listener.listen(1)
    print(f"[PID]{os.getpid()}\nTorch worker started.", flush=True)
    # stdin ends with the server, also before it has connected.
    ready, _, _ = select.select([listener.fileno(), 0], [], [])
    if listener.fileno() not in ready:
        os.unlink(address)
        return 0
    connection, _ = listener.accept()
    listener.close()
    os.unlink(address)

    worker = Worker(Link(connection, max_frame_bytes), rank, packages)
    signal.signal(signal.SIGTERM, lambda *_: worker.finish())
    return worker.run()


def _arguments(args: list[str]) -> tuple[str, int, str | None]:
    """Return socket path, longest frame, folder of the model's packages. Raises SystemExit with one sentence."""
    values = dict(zip(args[::2], args[1::2]))
    path, most = values.get("--sock-name"), values.get("--max-frame-bytes")
    if values.get("--sock-type", "unix") != "unix" or not path or not most:
        raise SystemExit("The worker needs --sock-type unix, --sock-name and --max-frame-bytes")
    return path, int(most), values.get("--packages")


if __name__ == "__main__":
    # The folder of this file would make its modules importable without the name of the package.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    try:
        status = _main()
    except SystemExit as leaving:
        if isinstance(leaving.code, str):
            print(leaving.code, file=sys.stderr)
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of libraries must not keep the process.
    os._exit(status)
