"""tritonclient.http and its aio client."""

import numpy as np
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from checks import HOST, check, done, raises
from tritonclient.utils import InferenceServerException

client = triton.InferenceServerClient(HOST, concurrency=4)
BIG = [2**53 + 1, -(2**63), 2**63 - 1]
BYTES = [b"", b"\x00\xff\xfe", "grüße".encode(), b"a\x00b"]


def tensor(name, data, datatype, binary=True):
    made = triton.InferInput(name, list(data.shape), datatype)
    made.set_data_from_numpy(data, binary_data=binary)
    return made


def same(data, datatype, binary=True, outputs=None):
    result = client.infer("tensors", [tensor("x", data, datatype, binary)], outputs=outputs)
    got = result.as_numpy("x")
    assert got is not None, result.get_response()
    assert got.dtype == data.dtype or datatype == "BYTES", got.dtype
    assert got.shape == data.shape, got.shape
    assert got.tolist() == data.tolist(), f"{got} is not {data}"
    return result


@check
def health():
    """tritonclient.http: live, ready, a ready model; an unknown one is not ready"""
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("tensors")
    assert not client.is_model_ready("nobody")


@check
def metadata():
    """tritonclient.http: metadata of the server and of a model"""
    server = client.get_server_metadata()
    assert "binary_tensor_data" in server["extensions"], server
    model = client.get_model_metadata("tensors")
    assert model["name"] == "tensors" and isinstance(model["inputs"], list), model


@check
def index():
    """tritonclient.http: the repository's index, posted with an empty body"""
    entries = {entry["name"]: entry for entry in client.get_model_repository_index()}
    assert entries["tensors"]["state"] == "READY", entries


@check
def binary():
    """tritonclient.http: binary tensors both ways, every datatype bit for bit"""
    for datatype, kind in {
        "INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "INT64": np.int64,
        "UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64,
    }.items():
        limits = np.iinfo(kind)
        same(np.array([[limits.min, 0], [1, limits.max]], dtype=kind), datatype)
    for datatype, kind in {"FP16": np.float16, "FP32": np.float32, "FP64": np.float64}.items():
        same(np.array([[0.1, -2.5, np.inf]], dtype=kind), datatype)
    same(np.array([True, False, True]), "BOOL")


@check
def beyond_double():
    """tritonclient.http: INT64 beyond 2^53, binary and JSON"""
    same(np.array(BIG, dtype=np.int64), "INT64")
    same(np.array(BIG, dtype=np.int64), "INT64", binary=False)
    same(np.array(BIG, dtype=np.int64), "INT64", binary=False, outputs=[triton.InferRequestedOutput("x", binary_data=False)])


@check
def no_text():
    """tritonclient.http: BYTES that are empty, hold NUL or are no UTF-8"""
    same(np.array(BYTES, dtype=np.object_), "BYTES")


@check
def mixed():
    """tritonclient.http: one binary and one JSON input, one binary and one JSON output"""
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([[7, 8]], dtype=np.int32)
    outputs = [triton.InferRequestedOutput("b", binary_data=True), triton.InferRequestedOutput("a", binary_data=False)]
    result = client.infer("tensors", [tensor("a", a, "FP32"), tensor("b", b, "INT32", False)], outputs=outputs)
    assert result.as_numpy("a").tolist() == a.tolist() and result.as_numpy("b").tolist() == b.tolist()


@check
def chosen():
    """tritonclient.http: only the outputs that were asked for"""
    data = np.array([1], dtype=np.int32)
    inputs = [tensor("a", data, "INT32"), tensor("b", data, "INT32")]
    result = client.infer("tensors", inputs, outputs=[triton.InferRequestedOutput("b")], request_id="seven")
    response = result.get_response()
    assert [output["name"] for output in response["outputs"]] == ["b"] and response["id"] == "seven", response


@check
def halves():
    """tritonclient.http: FP16 and BF16 outputs"""
    result = client.infer("tensors", [tensor("x", np.array([1], dtype=np.int32), "INT32")], parameters={"kind": "halves"})
    assert result.as_numpy("half").tolist() == [1.5, -2]
    assert result.as_numpy("brain").tolist() == [1.5, -2]


@check
def compressed():
    """tritonclient.http: request and response compressed with gzip, and with deflate"""
    data = np.zeros(5000, dtype=np.float32)
    for way in ("gzip", "deflate"):
        result = client.infer(
            "tensors", [tensor("x", data, "FP32")], request_compression_algorithm=way, response_compression_algorithm=way
        )
        assert result.as_numpy("x").tolist() == data.tolist(), way


@check
def wrong_shape():
    """tritonclient.http: a shape that the data does not fill is the client's error (422)"""
    body, length = triton.InferenceServerClient.generate_request_body([tensor("x", np.arange(6, dtype=np.float32), "FP32")])
    wrong = body.replace(b'"shape":[6]', b'"shape":[7]')
    assert wrong != body, body
    import httpx

    answer = httpx.post(f"http://{HOST}/v2/models/tensors/infer", content=wrong, headers={"Inference-Header-Content-Length": str(length)})
    assert answer.status_code == 422 and isinstance(answer.json()["error"], str), answer.text


@check
def unknown():
    """tritonclient.http: an unknown model, an unknown version, and an unknown model's metadata are 404"""
    inputs = [tensor("x", np.array([1], dtype=np.int32), "INT32")]
    is_404 = lambda error: error.status() in ("404", "StatusCode.NOT_FOUND") and "nobody" in error.message()
    raises(InferenceServerException, lambda: client.infer("nobody", inputs), is_404)
    raises(InferenceServerException, lambda: client.get_model_metadata("nobody"), is_404)
    raises(InferenceServerException, lambda: client.infer("tensors", inputs, model_version="77"), lambda e: e.status() == "404")


@check
def handler_error():
    """tritonclient.http: a handler that throws is a 500 with a message"""
    inputs = [tensor("x", np.array([1], dtype=np.int32), "INT32")]
    raises(
        InferenceServerException,
        lambda: client.infer("tensors", inputs, parameters={"fail": "throw"}),
        lambda e: e.status() == "500",
    )


@check
def at_once():
    """tritonclient.http: async_infer, eight at once"""
    data = [np.array([[n, n]], dtype=np.int64) for n in range(8)]
    running = [client.async_infer("tensors", [tensor("x", each, "INT64")]) for each in data]
    assert [each.get_result().as_numpy("x").tolist() for each in running] == [each.tolist() for each in data]


@check
async def asynchronous():
    """tritonclient.http.aio: infer, binary, with INT64 beyond 2^53 and BYTES that are no text"""
    async with triton_aio.InferenceServerClient(HOST) as aio:
        big, texts = np.array(BIG, dtype=np.int64), np.array(BYTES, dtype=np.object_)
        result = await aio.infer("tensors", [tensor("n", big, "INT64"), tensor("t", texts, "BYTES")])
        assert result.as_numpy("n").tolist() == BIG and result.as_numpy("t").tolist() == BYTES
        assert await aio.is_model_ready("tensors")


@check
def torchserve_handler():
    """tritonclient.http: a handler of TorchServe's kind (echo) is called with a BYTES tensor"""
    text = np.array([b"hello"], dtype=np.object_)
    result = client.infer("echo", [tensor("data", text, "BYTES")])
    assert result.as_numpy("output").tolist() == [[b"hello"]], result.get_response()


@check
def repository():
    """tritonclient.http: unload a model and load it again"""
    client.unload_model("spare")
    assert not client.is_model_ready("spare")
    client.load_model("spare")
    assert client.is_model_ready("spare")
    client.infer("spare", [tensor("x", np.array([1], dtype=np.int32), "INT32")])
    raises(InferenceServerException, lambda: client.load_model("nobody"))


client.close()
done()
