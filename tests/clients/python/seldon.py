"""Clients of Seldon's LLM module: its tensors over httpx-sse, what its translator does with them, and its OpenAI clients."""

import json
import time

import httpx
import openai
from checks import CANCEL_MS, REST, check, done, one_by_one, raises
from httpx_sse import connect_sse

TEXT = "one two three four five six"
HELLO = [{"role": "user", "content": "In the beginning"}]
NAMES = ["role", "content", "type", "output_all"]


def tensor(name, data, column=False):
    return {"name": name, "shape": [len(data), 1] if column else [len(data)], "datatype": "BYTES", "data": data}


def body(text, column=False, **parameters):
    """One message, as Seldon's documents write it; the runtimes read one of the two parameters each."""
    inputs = [tensor("role", ["user"], column), tensor("content", [text], column), tensor("type", ["text"], column)]
    return {"id": "r", "inputs": inputs, "parameters": {"llm_parameters": parameters, "kwargs": parameters}}


def outputs(value):
    """The text of each output of a response that has the form of the runtimes."""
    assert value["id"] == "r" and isinstance(value["model_name"], str), value
    for output in value["outputs"]:
        assert output["datatype"] == "BYTES" and output["shape"] == [1, 1], output
        assert output["parameters"]["content_type"] == "str", output
    return {output["name"]: output["data"][0] for output in value["outputs"]}


def stream(model, content):
    with httpx.Client(timeout=20) as client:
        with connect_sse(client, "POST", f"{REST}/v2/models/{model}/infer_stream", json=content) as source:
            source.response.raise_for_status()
            return [(time.time(), outputs(json.loads(sse.data))) for sse in source.iter_sse()]


@check
def deltas():
    """Seldon's tensors: infer_stream gives role, content, type and output_all one by one, for [n] and [n, 1]"""
    for column in (False, True):
        events = stream("chat", body(TEXT, column, pause=60))
        assert all(list(event) == NAMES for _, event in events), events[0]
        assert "".join(event["content"] for _, event in events) == TEXT, events
        assert {(event["role"], event["type"]) for _, event in events} == {("assistant", "text")}
        one_by_one([at for at, event in events if event["content"]], 0.06)


@check
def language_model():
    """Seldon's tensors: a language model says the same over infer, infer_stream and the OpenAI API"""
    asked = {"max_tokens": 12, "temperature": 0}
    content = HELLO[0]["content"]
    client = openai.OpenAI(base_url=f"{REST}/v1", api_key="none", max_retries=0)
    said = client.chat.completions.create(model="tiny-llama", messages=HELLO, **asked)
    answer = httpx.post(f"{REST}/v2/models/tiny-llama/infer", json=body(content, **asked), timeout=20)
    assert answer.status_code == 200, answer.text
    whole = outputs(answer.json())
    assert whole["content"] == said.choices[0].message.content
    assert json.loads(whole["output_all"])["usage"]["completion_tokens"] == said.usage.completion_tokens
    events = stream("tiny-llama", body(content, **asked))
    assert "".join(event["content"] for _, event in events) == whole["content"]


@check
def translator():
    """Seldon's translator: every event, split and trimmed as it does, is the chunk that OpenAI's client reads"""
    answer = httpx.post(f"{REST}/v2/models/chat/infer_stream", json=body(TEXT))
    pieces = answer.content.split(b"\n\n")
    assert pieces.pop() == b"", answer.content[-80:]
    chunks = []
    for piece in pieces:
        assert piece.startswith(b"data: ") and len(piece) < 65536, piece[:80]
        chunks.append(json.loads(outputs(json.loads(piece[6:]))["output_all"]))
    parsed = [openai.types.chat.ChatCompletionChunk.model_validate(chunk) for chunk in chunks]
    assert parsed[0].choices[0].delta.role == "assistant" and len({chunk.id for chunk in parsed}) == 1
    assert "".join(chunk.choices[0].delta.content or "" for chunk in parsed) == TEXT
    assert [chunk.choices[0].finish_reason for chunk in parsed if chunk.choices[0].finish_reason] == ["stop"]


@check
def several_messages():
    """Seldon's tensors: several messages have their parts as JSON lists"""
    inputs = [
        tensor("role", ["system", "user"]),
        tensor("content", ['["Be brief"]', '["one ", "two"]']),
        tensor("type", ['["text"]', '["text", "text"]']),
    ]
    answer = httpx.post(f"{REST}/v2/models/tiny-llama/infer", json={"id": "r", "inputs": inputs, "parameters": {"max_tokens": 2}})
    assert answer.status_code == 200 and outputs(answer.json())["role"] == "assistant", answer.text
    wrong = {"inputs": [tensor("role", ["user", "user"]), tensor("content", ["one"])]}
    answer = httpx.post(f"{REST}/v2/models/chat/infer", json=wrong)
    assert answer.status_code == 422 and "content" in answer.json()["error"], answer.text


@check
def embedding():
    """Seldon's tensors: embeddings are one tensor with a row for each input"""
    answer = httpx.post(f"{REST}/v2/models/tiny-llama/infer", json={"inputs": [tensor("input", ["one", "two"])]}, timeout=20)
    (output,) = answer.json()["outputs"]
    rows, columns = output["shape"]
    assert output["name"] == "embedding" and rows == 2 and len(output["data"]) == rows * columns, output["shape"]


@check
def openai_clients():
    """Seldon's OpenAI clients: below one model's infer and infer_stream, with and without a version"""
    for path in ("infer", "versions/1.0/infer"):
        client = openai.OpenAI(base_url=f"{REST}/v2/models/chat/{path}", api_key="none", max_retries=0)
        said = client.chat.completions.create(model="chat", messages=[{"role": "user", "content": TEXT}])
        assert said.choices[0].message.content == TEXT
        streaming = openai.OpenAI(base_url=f"{REST}/v2/models/chat/{path}_stream", api_key="none", max_retries=0)
        chunks = streaming.chat.completions.create(model="chat", messages=[{"role": "user", "content": TEXT}], stream=True)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == TEXT
    near = openai.OpenAI(base_url=f"{REST}/v2/models/tiny-llama/infer", api_key="none", max_retries=0)
    assert len(near.embeddings.create(model="tiny-llama", input=["one", "two"]).data) == 2
    error = raises(openai.NotFoundError, lambda: near.images.generate(model="tiny-llama", prompt="a cat"))
    assert "Image generation" in error.message, error


@check
def errors():
    """Seldon's tensors: an error before the first event has its status, one after it is an event"""
    answer = httpx.post(f"{REST}/v2/models/chat/infer_stream", json=body("boom"))
    assert answer.status_code == 500 and "boom" in answer.json()["error"], answer.text
    answer = httpx.post(f"{REST}/v2/models/chat/infer_stream", json=body("one two boom"))
    last = json.loads(answer.text.rstrip().split("\n\n")[-1].removeprefix("data: "))
    assert answer.status_code == 200 and "boom" in last["error"], answer.text


@check
def leaving():
    """Seldon's tensors: a client that leaves infer_stream stops the handler within a second"""
    content = body("word " * 500, pause=20, user="seldon")
    with httpx.Client(timeout=20) as client:
        with connect_sse(client, "POST", f"{REST}/v2/models/chat/infer_stream", json=content) as source:
            for _, event in zip(range(3), source.iter_sse()):
                assert event.data
            left = time.time()
    states = openai.OpenAI(base_url=f"{REST}/v1", api_key="none", max_retries=0)
    deadline = time.time() + 5
    while time.time() < deadline:
        word, at = states.completions.create(model="chat", prompt="seldon").choices[0].text.split()
        if word != "running":
            took = float(at) - left * 1000
            assert word == "cancelled" and took <= CANCEL_MS, f"{word} after {took:.0f} ms"
            return
        time.sleep(0.01)
    raise AssertionError("still running 5 s after the client left")


done()
