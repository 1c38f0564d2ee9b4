"""KServe's Python client, over REST and gRPC."""

import grpc
import httpx
import numpy as np
from checks import MLSERVER, REST, check, done
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig

BIG = [2**53 + 1, -(2**63), 2**63 - 1]
BYTES = [b"", b"\x00\xff\xfe", "grüße".encode()]


def rest():
    return InferenceRESTClient(RESTConfig(protocol="v2", retries=0))


def tensor(name, data, datatype, binary=False):
    made = InferInput(name=name, shape=list(data.shape), datatype=datatype)
    made.set_data_from_numpy(data, binary_data=binary)
    return made


def request(*inputs, model="tensors", **parameters):
    return InferRequest(model_name=model, infer_inputs=list(inputs), request_id="seven", parameters=parameters)


async def refused(body, status, has):
    try:
        await rest().infer(REST, body, model_name=body.model_name)
    except httpx.HTTPStatusError as error:
        assert error.response.status_code == status, error
        assert has in str(error), f"the client does not show the server's words: {error}"
        return
    raise AssertionError("no error was raised")


@check
async def health():
    """kserve REST: live, ready, a ready model, from the JSON bodies"""
    client = rest()
    assert await client.is_server_live(REST) and await client.is_server_ready(REST)
    assert await client.is_model_ready(REST, "tensors")


@check
async def infer():
    """kserve REST: JSON tensors, INT64 beyond 2^53, the request's id"""
    data = np.array([[0.5, 2], [3, 4]], dtype=np.float32)
    answer = await rest().infer(REST, request(tensor("x", data, "FP32"), tensor("n", np.array(BIG), "INT64")), model_name="tensors")
    assert answer.id == "seven" and answer.model_name == "tensors"
    assert answer.outputs[0].as_numpy().tolist() == data.tolist()
    assert answer.outputs[1].as_numpy().tolist() == BIG, answer.outputs[1].as_numpy()


@check
async def binary():
    """kserve REST: binary tensors both ways, FP16, BYTES and INT64 beyond 2^53"""
    # This client cannot read an answer whose BYTES are no UTF-8, in whatever form they come.
    words = [b"", "grüße".encode(), b"a\x00b"]
    half, texts = np.array([[0.5, -2]], dtype=np.float16), np.array(words, dtype=np.object_)
    inputs = tensor("h", half, "FP16", True), tensor("t", texts, "BYTES", True), tensor("n", np.array(BIG), "INT64", True)
    answer = await rest().infer(REST, request(*inputs, binary_data_output=True), model_name="tensors")
    got = {output.name: output.as_numpy().tolist() for output in answer.outputs}
    assert got == {"h": half.tolist(), "t": [word.decode() for word in words], "n": BIG}, got


@check
async def errors():
    """kserve REST: unknown model 404, a throwing handler 500, a wrong shape 422, each with the server's words"""
    one = tensor("x", np.array([1], dtype=np.int32), "INT32")
    await refused(request(one, model="nobody"), 404, "nobody")
    await refused(request(one, fail="throw"), 500, "")
    wrong = tensor("x", np.array([1, 2], dtype=np.int32), "INT32")
    wrong._shape = [3]
    await refused(request(wrong), 422, "x")


def grpc_client():
    return InferenceGRPCClient(MLSERVER, retries=0)


@check
async def grpc_health():
    """kserve gRPC: live, ready, a ready model"""
    async with grpc_client() as client:
        assert await client.is_server_live() and await client.is_server_ready()
        assert await client.is_model_ready("tensors")


@check
async def grpc_infer():
    """kserve gRPC: typed and raw tensors, INT64 beyond 2^53, BYTES that are no text, FP16"""
    async with grpc_client() as client:
        for binary in (False, True):
            texts = np.array(BYTES, dtype=np.object_)
            inputs = [tensor("n", np.array(BIG), "INT64", binary), tensor("t", texts, "BYTES", True)]
            if binary:
                inputs.append(tensor("h", np.array([0.5], dtype=np.float16), "FP16", True))
            else:
                inputs.pop()
            answer = await client.infer(request(*inputs))
            assert answer.id == "seven", answer.id
            for given, got in zip(inputs, answer.outputs, strict=True):
                assert got.as_numpy().tolist() == given.as_numpy().tolist(), got.as_numpy()


@check
async def grpc_errors():
    """kserve gRPC: unknown model NOT_FOUND, a wrong shape INVALID_ARGUMENT"""
    async with grpc_client() as client:
        wrong = tensor("x", np.array([1, 2], dtype=np.int32), "INT32")
        wrong._shape = [3]
        one = tensor("x", np.array([1], dtype=np.int32), "INT32")
        for body, code in ((request(one, model="nobody"), "NOT_FOUND"), (request(wrong), "INVALID_ARGUMENT")):
            try:
                await client.infer(body)
            except grpc.RpcError as error:
                assert error.code() == grpc.StatusCode[code], error
            else:
                raise AssertionError("no error was raised")


@check
def load_fields():
    """KServe's proto: load and unload name the model in field 1, and the answer says so in fields 1 and 2"""
    from kserve.protocol.grpc import grpc_predict_v2_pb2 as pb
    from kserve.protocol.grpc.grpc_predict_v2_pb2_grpc import GRPCInferenceServiceStub

    with grpc.insecure_channel(MLSERVER) as channel:
        stub = GRPCInferenceServiceStub(channel)
        gone = stub.RepositoryModelUnload(pb.RepositoryModelUnloadRequest(model_name="spare"))
        assert (gone.model_name, gone.isUnloaded) == ("spare", True), gone
        back = stub.RepositoryModelLoad(pb.RepositoryModelLoadRequest(model_name="spare"))
        assert (back.model_name, back.isLoaded) == ("spare", True), back


done()
