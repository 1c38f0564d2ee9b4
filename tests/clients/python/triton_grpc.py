"""tritonclient.grpc: unary, and decoupled streams on the listener with Triton's shape."""

import asyncio
import queue
import time

import numpy as np
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio
from checks import TRITON, Run, check, done, one_by_one, raises
from tritonclient.utils import InferenceServerException

client = triton.InferenceServerClient(TRITON)
BIG = [2**53 + 1, -(2**63), 2**63 - 1]
BYTES = [b"", b"\x00\xff\xfe", "grüße".encode(), b"a\x00b"]
TEXT = "one two three four five six"


def tensor(name, data, datatype):
    made = triton.InferInput(name, list(data.shape), datatype)
    made.set_data_from_numpy(data)
    return made


def text(value, name="text"):
    return tensor(name, np.array([value.encode()], dtype=np.object_), "BYTES")


class Stream:
    """A stream of its own connection; `next` gives (result, error, time)."""

    def __init__(self, headers=None):
        self.client = triton.InferenceServerClient(TRITON)
        self.items = queue.Queue()
        self.client.start_stream(lambda result, error: self.items.put((result, error, time.time())), headers=headers)

    def ask(self, model, inputs, **more):
        self.client.async_stream_infer(model, inputs, **more)

    def next(self):
        return self.items.get(timeout=10)

    def close(self, cancel=False):
        self.client.stop_stream(cancel_requests=cancel)
        self.client.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def is_final(result):
    return result.get_response().parameters["triton_final_response"].bool_param


@check
def health():
    """tritonclient.grpc: live, ready, metadata, index"""
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("tensors")
    assert client.get_server_metadata().name != ""
    assert client.get_model_metadata("tensors").name == "tensors"
    assert "tensors" in [model.name for model in client.get_model_repository_index().models]


@check
def unary():
    """tritonclient.grpc: raw tensors both ways, INT64 beyond 2^53, BYTES that are no text, FP16"""
    big, texts = np.array(BIG, dtype=np.int64), np.array(BYTES, dtype=np.object_)
    half = np.array([[0.5, -65504]], dtype=np.float16)
    inputs = [tensor("n", big, "INT64"), tensor("t", texts, "BYTES"), tensor("h", half, "FP16")]
    result = client.infer("tensors", inputs, request_id="seven")
    assert result.as_numpy("n").tolist() == BIG and result.as_numpy("t").tolist() == BYTES
    assert result.as_numpy("h").tolist() == half.tolist() and result.get_response().id == "seven"


@check
def errors():
    """tritonclient.grpc: unknown model NOT_FOUND, wrong shape INVALID_ARGUMENT, a throwing handler INTERNAL"""
    one = [tensor("x", np.array([1], dtype=np.int32), "INT32")]
    status = lambda name: lambda error: error.status() == f"StatusCode.{name}"
    raises(InferenceServerException, lambda: client.infer("nobody", one), status("NOT_FOUND"))
    raises(InferenceServerException, lambda: client.is_model_ready("nobody") or client.get_model_metadata("nobody"), status("NOT_FOUND"))
    wrong = tensor("x", np.arange(6, dtype=np.float32), "FP32")
    wrong.set_shape([7])
    raises(InferenceServerException, lambda: client.infer("tensors", [wrong]), status("INVALID_ARGUMENT"))
    raises(InferenceServerException, lambda: client.infer("tensors", one, parameters={"fail": "throw"}), status("INTERNAL"))


@check
def deadline():
    """tritonclient.grpc: client_timeout is DEADLINE_EXCEEDED and cancels the handler"""
    run = Run()
    started = time.time()
    raises(
        InferenceServerException,
        lambda: client.infer("count", [text(run.text, "data")], client_timeout=0.5),
        lambda error: "DEADLINE" in str(error),
    )
    took = run.ended_ms_after(started + 0.5)
    assert took <= 300, f"{took:.0f} ms after the deadline"


@check
def cancel_unary():
    """tritonclient.grpc: cancelling async_infer stops the handler within a second"""
    run = Run()
    call = client.async_infer("count", [text(run.text, "data")], lambda result, error: None)
    while run.state()["state"] != "running":
        time.sleep(0.01)
    left = time.time()
    call.cancel()
    run.stops(left)


@check
def decoupled():
    """tritonclient.grpc: one request, many responses, one by one, then the empty final response"""
    with Stream() as stream:
        stream.ask("tensors", [text(TEXT)], request_id="r", parameters={"pause": 60}, enable_empty_final_response=True)
        words, times = [], []
        while True:
            result, error, at = stream.next()
            assert error is None, error
            assert result.get_response().id == "r" and result.get_response().model_name == "tensors"
            if result.as_numpy("output") is None:
                assert is_final(result)
                break
            words.append(result.as_numpy("output").ravel()[0].decode())
            times.append(at)
        assert "".join(words) == TEXT, words
        one_by_one(times, 0.06)


@check
def several():
    """tritonclient.grpc: many requests of two models on one stream, told apart by their ids"""
    with Stream() as stream:
        for index in range(6):
            stream.ask("tensors", [text(f"a{index} b{index}")], request_id=f"t{index}", parameters={"pause": 10}, enable_empty_final_response=True)
        stream.ask("echo", [text("hello", "data")], request_id="echo", enable_empty_final_response=True)
        texts, finals = {}, set()
        while len(finals) < 7:
            result, error, _ = stream.next()
            assert error is None, error
            response = result.get_response()
            output = result.as_numpy("output")
            if output is not None:
                texts[response.id] = texts.get(response.id, "") + output.ravel()[0].decode()
            if is_final(result):
                finals.add(response.id)
        expected = {f"t{index}": f"a{index} b{index}" for index in range(6)} | {"echo": "hello"}
        assert texts == expected, texts


@check
def stream_error():
    """tritonclient.grpc: a failed request is an error_message, and the stream goes on"""
    with Stream() as stream:
        stream.ask("nobody", [text(TEXT)], request_id="bad")
        _, error, _ = stream.next()
        assert error is not None and "nobody" in error.message(), error
        stream.ask("tensors", [text("one two boom")], request_id="mid", parameters={"fail": "boom"})
        assert [stream.next()[0].as_numpy("output").ravel()[0] for _ in range(2)] == [b"one ", b"two "]
        _, error, _ = stream.next()
        assert error is not None and "boom" in error.message(), error
        stream.ask("tensors", [text("fine")], request_id="good")
        result, error, _ = stream.next()
        assert error is None and result.as_numpy("output").ravel()[0] == b"fine", error


@check
def stream_status():
    """tritonclient.grpc: with the header triton_grpc_error a failed request ends the stream with its status"""
    with Stream(headers={"triton_grpc_error": "true"}) as stream:
        stream.ask("nobody", [text(TEXT)], request_id="bad")
        _, error, _ = stream.next()
        assert error is not None and error.status() == "StatusCode.NOT_FOUND", (error, error and error.status())


@check
def cancel_stream():
    """tritonclient.grpc: stop_stream(cancel_requests=True) stops the handler within a second"""
    run = Run()
    stream = Stream()
    stream.ask("count", [text(run.text, "data")])
    for _ in range(3):
        _, error, _ = stream.next()
        assert error is None, error
    left = time.time()
    stream.close(cancel=True)
    run.stops(left)


@check
async def asynchronous():
    """tritonclient.grpc.aio: stream_infer with several requests; items come one by one"""

    async def requests():
        for index in range(2):
            yield {"model_name": "tensors", "inputs": [text(TEXT)], "request_id": str(index), "parameters": {"pause": 60}}

    async with triton_aio.InferenceServerClient(TRITON) as aio:
        words, times = {}, []
        async for result, error in aio.stream_infer(requests()):
            assert error is None, error
            output = result.as_numpy("output")
            if output is None:
                continue
            words.setdefault(result.get_response().id, []).append(output.ravel()[0].decode())
            times.append(time.time())
        assert {key: "".join(value) for key, value in words.items()} == {"0": TEXT, "1": TEXT}, words
        one_by_one(times, 0.03)


@check
async def concurrent():
    """tritonclient.grpc.aio: eight streams of one model progress together"""

    async def one(aio, index):
        async def requests():
            yield {"model_name": "tensors", "inputs": [text(TEXT)], "request_id": str(index), "parameters": {"pause": 60}}

        return [time.time() async for result, error in aio.stream_infer(requests()) if error is None and result.as_numpy("output") is not None]

    async with triton_aio.InferenceServerClient(TRITON) as aio:
        times = await asyncio.gather(*(one(aio, index) for index in range(8)))
    assert all(len(each) == 6 for each in times), [len(each) for each in times]
    assert max(each[0] for each in times) < min(each[-1] for each in times), "not together"


client.close()
done()
