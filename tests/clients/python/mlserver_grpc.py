"""MLServer's own gRPC stubs: unary and the three shapes of streams, on the listener with MLServer's shape."""

import json
import queue
import threading
import time

import grpc
from checks import MLSERVER, Run, check, done, one_by_one, raises

from mlserver.grpc import dataplane_pb2 as pb
from mlserver.grpc.dataplane_pb2_grpc import GRPCInferenceServiceStub

channel = grpc.insecure_channel(MLSERVER)
stub = GRPCInferenceServiceStub(channel)
Input = pb.ModelInferRequest.InferInputTensor
BIG = [2**53 + 1, -(2**63), 2**63 - 1]
BYTES = [b"", b"\x00\xff\xfe", "grüße".encode(), b"a\x00b"]
TEXT = "one two three four five six"


def parameter(value):
    if isinstance(value, bool):
        return pb.InferParameter(bool_param=value)
    return pb.InferParameter(int64_param=value) if isinstance(value, int) else pb.InferParameter(string_param=value)


def request(model, inputs, raw=(), id="", **parameters):
    return pb.ModelInferRequest(
        model_name=model, id=id, inputs=inputs, raw_input_contents=raw,
        parameters={key: parameter(value) for key, value in parameters.items()},
    )


def typed(name, datatype, shape, **contents):
    return Input(name=name, datatype=datatype, shape=shape, contents=pb.InferTensorContents(**contents))


def text(value, model="tensors", id="", **parameters):
    return request(model, [typed("data", "BYTES", [1], bytes_contents=[value.encode()])], id=id, **parameters)


def words(responses):
    return [response.outputs[0].contents.bytes_contents[0].decode() for response in responses]


def has(code):
    return lambda error: error.code() == code


class Requests:
    """Requests that are sent when `put` is called, until `close`."""

    def __init__(self):
        self.items = queue.Queue()

    def put(self, item):
        self.items.put(item)

    def close(self):
        self.items.put(None)

    def __iter__(self):
        return iter(self.items.get, None)


@check
def health():
    """MLServer's stubs: live, ready, metadata, index"""
    assert stub.ServerLive(pb.ServerLiveRequest()).live and stub.ServerReady(pb.ServerReadyRequest()).ready
    assert stub.ModelReady(pb.ModelReadyRequest(name="tensors")).ready
    assert stub.ServerMetadata(pb.ServerMetadataRequest()).name != ""
    assert stub.ModelMetadata(pb.ModelMetadataRequest(name="tensors")).name == "tensors"
    states = {model.name: model.state for model in stub.RepositoryIndex(pb.RepositoryIndexRequest()).models}
    assert states["tensors"] == "READY", states


@check
def contents():
    """MLServer's stubs: typed contents of every datatype come back typed, INT64 beyond 2^53, BYTES that are no text"""
    inputs = [
        typed("bool", "BOOL", [2], bool_contents=[True, False]),
        typed("i8", "INT8", [2], int_contents=[-128, 127]),
        typed("i64", "INT64", [3], int64_contents=BIG),
        typed("u8", "UINT8", [1], uint_contents=[255]),
        typed("u64", "UINT64", [1], uint64_contents=[2**64 - 1]),
        typed("f32", "FP32", [1, 2], fp32_contents=[0.5, -1.25]),
        typed("f64", "FP64", [1], fp64_contents=[0.1]),
        typed("bytes", "BYTES", [4], bytes_contents=BYTES),
    ]
    response = stub.ModelInfer(request("tensors", inputs, id="seven"))
    assert response.id == "seven" and response.model_name == "tensors" and not response.raw_output_contents
    for given, got in zip(inputs, response.outputs, strict=True):
        assert (got.name, got.datatype, list(got.shape)) == (given.name, given.datatype, list(given.shape)), got
        assert got.contents == given.contents, f"{got} is not {given}"


@check
def raw():
    """MLServer's stubs: raw contents come back raw"""
    data = (2**53 + 1).to_bytes(8, "little", signed=True)
    response = stub.ModelInfer(request("tensors", [Input(name="x", datatype="INT64", shape=[1])], raw=[data]))
    assert list(response.raw_output_contents) == [data] and not response.outputs[0].HasField("contents")


@check
def errors():
    """MLServer's stubs: unknown models are NOT_FOUND everywhere, wrong shapes INVALID_ARGUMENT, a throwing handler INTERNAL"""
    for call in (
        lambda: stub.ModelInfer(text("x", "nobody")),
        lambda: stub.ModelReady(pb.ModelReadyRequest(name="nobody")),
        lambda: stub.ModelMetadata(pb.ModelMetadataRequest(name="nobody")),
        lambda: stub.RepositoryModelLoad(pb.RepositoryModelLoadRequest(model_name="nobody")),
        lambda: stub.RepositoryModelUnload(pb.RepositoryModelUnloadRequest(model_name="nobody")),
        lambda: list(stub.ModelStreamInfer(iter([text("x", "nobody")]))),
    ):
        raises(grpc.RpcError, call, has(grpc.StatusCode.NOT_FOUND))
    wrong = request("tensors", [typed("x", "FP32", [3], fp32_contents=[1, 2])])
    raises(grpc.RpcError, lambda: stub.ModelInfer(wrong), has(grpc.StatusCode.INVALID_ARGUMENT))
    raises(grpc.RpcError, lambda: list(stub.ModelStreamInfer(iter([wrong]))), has(grpc.StatusCode.INVALID_ARGUMENT))
    raises(grpc.RpcError, lambda: stub.ModelInfer(text("x", fail="throw")), has(grpc.StatusCode.INTERNAL))
    raises(grpc.RpcError, lambda: list(stub.ModelStreamInfer(iter([]))), has(grpc.StatusCode.INVALID_ARGUMENT))


@check
def unary_stream():
    """MLServer's stubs: one request, many responses, one by one, with its id in each"""
    responses, times = [], []
    for response in stub.ModelStreamInfer(iter([text(TEXT, id="r", pause=60)])):
        responses.append(response)
        times.append(time.time())
    assert "".join(words(responses)) == TEXT and {each.id for each in responses} == {"r"}, responses
    assert {each.model_name for each in responses} == {"tensors"}
    one_by_one(times, 0.06)


@check
def stream_unary():
    """MLServer's stubs: many requests, one response after the client's end"""
    sent = [text(word, collect=True) for word in ("a", "b", "c")]
    assert words(stub.ModelStreamInfer(iter(sent))) == ["a+b+c"]


@check
def stream_stream():
    """MLServer's stubs: both directions at once; the answers to one request come before the next is sent"""
    requests = Requests()
    responses = stub.ModelStreamInfer(iter(requests))
    for line in ("one two", "three", "four five"):
        requests.put(text(line))
        count = len(line.split())
        assert "".join(words([next(responses) for _ in range(count)])) == line
    requests.close()
    assert list(responses) == []


@check
def after_first():
    """MLServer's stubs: an error after the first item is a status, and the items before it stay"""
    got = []

    def read():
        for response in stub.ModelStreamInfer(iter([text("one two boom", fail="boom")])):
            got.append(response)

    error = raises(grpc.RpcError, read)
    assert words(got) == ["one ", "two "] and "boom" in error.details(), (got, error)


@check
def torchserve_handler():
    """MLServer's stubs: a handler of TorchServe's kind (count) streams each intermediate response as one message"""
    responses = list(stub.ModelStreamInfer(iter([text(Run(items=5, delay=10).text, "count")])))
    numbers = [int(word) for word in words(responses) if word.strip()]
    assert len(numbers) == 5 and numbers == sorted(numbers), numbers
    assert responses[0].outputs[0].datatype == "BYTES" and list(responses[0].outputs[0].shape) == [1, 1]
    assert responses[0].outputs[0].parameters["content_type"].string_param == "str"


def chat(model, content, **parameters):
    """One message in the tensors of Seldon's LLM module; objects are JSON texts here."""
    columns = {"role": "user", "content": content, "type": "text"}
    inputs = [typed(name, "BYTES", [1, 1], bytes_contents=[value.encode()]) for name, value in columns.items()]
    return request(model, inputs, id="r", llm_parameters=json.dumps(parameters))


def texts(response):
    return {output.name: output.contents.bytes_contents[0].decode() for output in response.outputs}


@check
def language_model():
    """MLServer's stubs: role, content and type are a chat; ModelStreamInfer gives deltas with the chunks of OpenAI's API"""
    asked = {"max_tokens": 12, "temperature": 0}
    whole = texts(stub.ModelInfer(chat("tiny-llama", "In the beginning", **asked)))
    assert whole["role"] == "assistant" and json.loads(whole["output_all"])["object"] == "chat.completion", whole
    responses = list(stub.ModelStreamInfer(iter([chat("tiny-llama", "In the beginning", **asked)])))
    assert {(each.id, each.model_name) for each in responses} == {("r", "tiny-llama")}
    assert all(list(output.shape) == [1, 1] and output.parameters["content_type"].string_param == "str" for each in responses for output in each.outputs)
    deltas = [texts(each) for each in responses]
    assert len(deltas) > 3 and "".join(each["content"] for each in deltas) == whole["content"], deltas
    chunks = [json.loads(each["output_all"]) for each in deltas]
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks) == whole["content"]


@check
def chat_one_by_one():
    """MLServer's stubs: deltas of a chat come one by one"""
    times = []
    for response in stub.ModelStreamInfer(iter([chat("chat", TEXT, pause=60)])):
        if texts(response)["content"]:
            times.append(time.time())
    one_by_one(times, 0.06)


def leaves(how):
    """Reads three items of a long run, leaves, and sees the handler stopped in time."""
    run = Run()
    own = grpc.insecure_channel(MLSERVER, options=[("grpc.use_local_subchannel_pool", 1)])
    call = GRPCInferenceServiceStub(own).ModelStreamInfer(iter([text(run.text, "count")]))
    for _ in range(3):
        next(call)
    left = time.time()
    how(call, own)
    run.stops(left)
    own.close()


@check
def cancel_stream():
    """MLServer's stubs: cancel() of a stream stops the handler within a second"""
    leaves(lambda call, _: call.cancel())


@check
def cut():
    """MLServer's stubs: a cut connection stops the handler within a second"""
    leaves(lambda _, own: own.close())


@check
def cancel_unary():
    """MLServer's stubs: cancel() of ModelInfer stops the handler within a second"""
    run = Run()
    call = stub.ModelInfer.future(text(run.text, "count"))
    while run.state()["state"] != "running":
        time.sleep(0.01)
    left = time.time()
    call.cancel()
    run.stops(left)


@check
def deadline():
    """MLServer's stubs: a deadline ends the stream with DEADLINE_EXCEEDED and stops the handler"""
    run = Run()
    started = time.time()
    call = lambda: list(stub.ModelStreamInfer(iter([text(run.text, "count")]), timeout=0.5))
    raises(grpc.RpcError, call, has(grpc.StatusCode.DEADLINE_EXCEEDED))
    took = run.ended_ms_after(started + 0.5)
    assert took <= 300, f"{took:.0f} ms after the deadline"


@check
def concurrent():
    """MLServer's stubs: eight streams of one model progress together, and a unary request is answered meanwhile"""
    times = [[] for _ in range(8)]

    def read(index):
        for _ in stub.ModelStreamInfer(iter([text(TEXT, pause=100)])):
            times[index].append(time.time())

    threads = [threading.Thread(target=read, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    stub.ModelInfer(text("meanwhile"))
    answered = time.time()
    for thread in threads:
        thread.join()
    assert all(len(each) == 6 for each in times), [len(each) for each in times]
    assert max(each[0] for each in times) < min(each[-1] for each in times), "not together"
    assert answered < max(each[-1] for each in times), "the unary request waited for the streams"


@check
def repository():
    """MLServer's stubs: load (twice) and unload a model"""
    stub.RepositoryModelUnload(pb.RepositoryModelUnloadRequest(model_name="spare"))
    for _ in range(2):
        stub.RepositoryModelLoad(pb.RepositoryModelLoadRequest(model_name="spare"))
    assert stub.ModelReady(pb.ModelReadyRequest(name="spare")).ready


channel.close()
done()
