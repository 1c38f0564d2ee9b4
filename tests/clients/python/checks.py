"""What the client programs share: named checks, their places, and questions to the test models."""

import asyncio
import inspect
import json
import os
import signal
import time
import traceback
import uuid

import httpx

REST = os.environ["REST_URL"]
HOST = REST.removeprefix("http://")
MLSERVER = os.environ["MLSERVER_TARGET"]
TRITON = os.environ["TRITON_TARGET"]
MANAGEMENT = os.environ["MANAGEMENT_URL"]
LIMIT_S = 30
# A handler has to know of its client's leave within this.
CANCEL_MS = 1000


class TooLong(Exception):
    pass


def _too_long(_signal, _frame):
    raise TooLong(f"not done within {LIMIT_S} s")


signal.signal(signal.SIGALRM, _too_long)


def check(body):
    """Runs it at once, as a check named by its docstring."""
    name = " ".join((body.__doc__ or body.__name__).split())
    signal.alarm(LIMIT_S)
    try:
        if inspect.iscoroutinefunction(body):
            asyncio.run(asyncio.wait_for(body(), LIMIT_S))
        else:
            body()
        print(f"ok {name}", flush=True)
    except BaseException as error:  # pylint: disable=broad-except
        last = traceback.format_exc().strip().splitlines()
        print(f"FAILED {name}", flush=True)
        for line in last[-6:]:
            print(f"    {line[:400]}", flush=True)
        if isinstance(error, KeyboardInterrupt):
            raise
    finally:
        signal.alarm(0)


def done():
    print("DONE", flush=True)


class Run:
    """A run of the model `count`, which can say how many items it has made and how it ended."""

    def __init__(self, items=1000, delay=20, size=0):
        self.id = uuid.uuid4().hex
        self.text = json.dumps({"n": items, "delay": delay, "size": size, "id": self.id})

    def state(self):
        answer = httpx.post(f"{REST}/predictions/count", json={"query": "produced", "id": self.id})
        answer.raise_for_status()
        return answer.json()

    def ended_ms_after(self, left):
        """Milliseconds from `left` (time.time()) to the handler's end as cancelled."""
        deadline = time.time() + 5
        while time.time() < deadline:
            state = self.state()
            if state["state"] != "running":
                assert state["state"] == "cancelled", state
                return state["endedAt"] - left * 1000
            time.sleep(0.01)
        raise AssertionError(f"still running 5 s after the client left: {self.state()}")

    def stops(self, left):
        took = self.ended_ms_after(left)
        assert took <= CANCEL_MS, f"the handler was told {took:.0f} ms after the client left"


def one_by_one(arrivals, pause):
    """Arrival times of at least five items show the handler's pauses (seconds)."""
    assert len(arrivals) >= 5, f"{len(arrivals)} items"
    spread = arrivals[-1] - arrivals[0]
    assert spread > (len(arrivals) - 1) * pause * 0.5, f"all within {spread:.3f} s"


def raises(kind, call, has=None):
    try:
        call()
    except kind as error:
        if has is not None:
            assert has(error), f"another {kind.__name__}: {error!r}"
        return error
    raise AssertionError(f"no {kind.__name__} was raised")
