"""The client code of MLServer's documentation ("Streaming support"), unchanged but for addresses and prints."""

import time

import grpc
import httpx
import mlserver.grpc.converters as converters
import mlserver.grpc.dataplane_pb2_grpc as dataplane
import mlserver.types as types
import numpy as np
from checks import MLSERVER, REST, check, done, one_by_one
from httpx_sse import connect_sse
from mlserver.codecs import NumpyCodec, StringCodec
from mlserver.grpc.converters import ModelInferResponseConverter

TEXT = "What is the capital of France?"
WORDS = [["What"], [" is"], [" the"], [" capital"], [" of"], [" France?"]]
GENERATE_REQUEST = {
    "inputs": [
        {"name": "prompt", "shape": [1], "datatype": "BYTES", "data": [TEXT], "parameters": {"content_type": "str"}}
    ],
    "outputs": [{"name": "output"}],
}


def generate_request():
    return types.InferenceRequest.model_validate(GENERATE_REQUEST)


def coded_request():
    """As the documentation makes it for gRPC: StringCodec says shape [1, 1], the metadata [1]."""
    request = generate_request()
    request.inputs[0] = StringCodec.encode_input("prompt", request.inputs[0].data.root)
    assert request.inputs[0].shape == [1, 1], request.inputs[0]
    return request


def rest_stream(path, request):
    words, times = [], []
    with httpx.Client() as client:
        with connect_sse(client, "POST", f"{REST}{path}", json=request.model_dump()) as event_source:
            for sse in event_source.iter_sse():
                response = types.InferenceResponse.model_validate_json(sse.data)
                words.append(StringCodec.decode_output(response.outputs[0]))
                times.append(time.time())
    assert words == WORDS, words
    one_by_one(times, 0.06)


@check
def generate_stream():
    """MLServer's documentation: generate_stream and infer_stream over REST, with httpx-sse and StringCodec"""
    for path in ("generate_stream", "infer_stream"):
        rest_stream(f"/v2/models/text-model/{path}", generate_request())


@check
def coded_stream():
    """MLServer's documentation: a request of StringCodec, shape [1, 1], over REST"""
    request = generate_request()
    request.inputs[0] = StringCodec.encode_input("prompt", [TEXT], use_bytes=False)
    rest_stream("/v2/models/text-model/generate_stream", request)


@check
async def grpc_stream():
    """MLServer's documentation: ModelStreamInfer over grpc.aio, with StringCodec and its converters"""
    request = converters.ModelInferRequestConverter.from_types(coded_request(), model_name="text-model", model_version=None)

    async def get_inference_request_stream(inference_request):
        yield inference_request

    words, times = [], []
    async with grpc.aio.insecure_channel(MLSERVER) as grpc_channel:
        grpc_stub = dataplane.GRPCInferenceServiceStub(grpc_channel)
        async for response in grpc_stub.ModelStreamInfer(get_inference_request_stream(request)):
            response = ModelInferResponseConverter.to_types(response)
            words.append(StringCodec.decode_output(response.outputs[0]))
            times.append(time.time())
    assert words == WORDS, words
    one_by_one(times, 0.06)


@check
def unary():
    """MLServer's codecs: infer over REST and ModelInfer over gRPC"""
    url = f"{REST}/v2/models/text-model/infer"
    answer = httpx.post(url, json=generate_request().model_dump())
    assert answer.status_code == 200, answer.text
    response = types.InferenceResponse.model_validate_json(answer.text)
    assert "".join(StringCodec.decode_output(response.outputs[0])) == TEXT, response
    with grpc.insecure_channel(MLSERVER) as channel:
        request = converters.ModelInferRequestConverter.from_types(coded_request(), model_name="text-model", model_version=None)
        answer = dataplane.GRPCInferenceServiceStub(channel).ModelInfer(request)
    response = ModelInferResponseConverter.to_types(answer)
    assert "".join(StringCodec.decode_output(response.outputs[0])) == TEXT, response


@check
def other_inputs():
    """MLServer's codecs: inputs that the metadata do not declare, or lack, reach the model"""
    inputs = [NumpyCodec.encode_input("x", np.array([[1.5, 2.5]])), NumpyCodec.encode_input("y", np.array([[7]]))]
    request = types.InferenceRequest(inputs=inputs)
    answer = httpx.post(f"{REST}/v2/models/tensors/infer", json=request.model_dump())
    assert answer.status_code == 200, answer.text
    outputs = types.InferenceResponse.model_validate_json(answer.text).outputs
    assert [NumpyCodec.decode_output(output).tolist() for output in outputs] == [[[1.5, 2.5]], [[7]]], outputs


@check
def metadata():
    """MLServer's model-settings.json: what it declares is reported"""
    model = httpx.get(f"{REST}/v2/models/text-model").json()
    assert (model["versions"], model["platform"]) == (["text-model/v1.2.3"], "mlserver"), model
    assert [(each["name"], each["datatype"], each["shape"]) for each in model["inputs"]] == [("prompt", "BYTES", [1])], model


done()
