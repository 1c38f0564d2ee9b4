"""httpx and httpx-sse against infer_stream and generate_stream, as Seldon's documents and MLServer's tests use them."""

import json
import threading
import time

import httpx
from checks import REST, Run, check, done, one_by_one, raises
from httpx_sse import connect_sse

TEXT = "one two three four five six"


def body(text, name="data", id="r", **parameters):
    data = {"name": name, "shape": [1], "datatype": "BYTES", "parameters": {"content_type": "str"}, "data": [text]}
    return {"id": id, "inputs": [data], "parameters": parameters}


def stream(path, content, headers=None):
    """(time, event) of every event; the answer's headers."""
    with httpx.Client(timeout=20) as client:
        with connect_sse(client, "POST", f"{REST}{path}", json=content, headers=headers or {}) as source:
            source.response.raise_for_status()
            events = [(time.time(), sse) for sse in source.iter_sse()]
            return events, source.response.headers


def words(events):
    return [json.loads(sse.data)["outputs"][0]["data"][0] for _, sse in events]


@check
def framing():
    """infer_stream: one `data:` line per event and nothing else; id, model_name, outputs in each; the end is the end of the body"""
    answer = httpx.post(f"{REST}/v2/models/tensors/infer_stream", json=body(TEXT))
    assert answer.headers["content-type"].startswith("text/event-stream"), answer.headers
    events = answer.text.split("\n\n")
    assert events.pop() == "" and len(events) == 6, answer.text
    for event in events:
        assert event.startswith("data: ") and "\n" not in event, event
        value = json.loads(event[6:])
        assert value["id"] == "r" and value["model_name"] == "tensors" and len(value["outputs"]) == 1, value
        output = value["outputs"][0]
        assert output["datatype"] == "BYTES" and output["parameters"]["content_type"] == "str", output


@check
def one_at_a_time():
    """infer_stream: events arrive one by one, with gzip asked for, never compressed, not cached or buffered"""
    for path in ("infer_stream", "versions/1.0/infer_stream", "generate_stream"):
        events, headers = stream(f"/v2/models/tensors/{path}", body(TEXT, pause=60), {"Accept-Encoding": "gzip"})
        assert "".join(words(events)) == TEXT, events
        one_by_one([at for at, _ in events], 0.06)
        assert "content-encoding" not in headers and headers["cache-control"] == "no-cache"
        assert headers["x-accel-buffering"] == "no"


@check
def unary_compressed():
    """infer: compressed when asked for; a request may be compressed, too"""
    import gzip

    content = gzip.compress(json.dumps(body("x" * 5000)).encode())
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json", "Accept-Encoding": "gzip"}
    answer = httpx.post(f"{REST}/v2/models/tensors/infer", content=content, headers=headers)
    assert answer.headers.get("content-encoding") == "gzip", (answer.status_code, answer.headers)
    assert answer.json()["outputs"][0]["data"] == ["x" * 5000]


@check
def generated_id():
    """infer_stream: without an id every event has the same one of the server's"""
    content = body(TEXT)
    del content["id"]
    events, _ = stream("/v2/models/tensors/infer_stream", content)
    ids = {json.loads(sse.data)["id"] for _, sse in events}
    assert len(ids) == 1 and ids != {""}, ids


@check
def before_first():
    """infer_stream: an error before the first event is a status with JSON (404, 422, the handler's own)"""
    url = f"{REST}/v2/models/tensors/infer_stream"
    wrong = body(TEXT) | {"inputs": [{"name": "x", "shape": [3], "datatype": "INT32", "data": [1, 2]}]}
    for answer, status in (
        (httpx.post(f"{REST}/v2/models/nobody/infer_stream", json=body(TEXT)), 404),
        (httpx.post(url, json=wrong), 422),
        (httpx.post(url, content=b"{"), 422),
        (httpx.post(url, json=body("boom one", fail="boom")), 418),
    ):
        assert answer.status_code == status, (answer.status_code, status, answer.text)
        assert answer.headers["content-type"] == "application/json" and isinstance(answer.json()["error"], str)


@check
def after_first():
    """infer_stream: an error after the first event is one event with `error`, then a clean end"""
    events, _ = stream("/v2/models/tensors/infer_stream", body("one two boom", fail="boom"))
    assert words(events[:-1]) == ["one ", "two "], events
    last = json.loads(events[-1][1].data)
    assert "boom" in last["error"] and last["id"] == "r" and last["model_name"] == "tensors", last


@check
def torchserve_handler():
    """infer_stream: a handler of TorchServe's kind (count), each intermediate response an event"""
    events, _ = stream("/v2/models/count/infer_stream", body(Run(items=5, delay=10).text))
    numbers = [int(word) for word in words(events) if word.strip()]
    assert len(numbers) == 5 and numbers == sorted(numbers), numbers
    output = json.loads(events[0][1].data)["outputs"][0]
    assert output["shape"] == [1, 1] and output["parameters"]["content_type"] == "str", output


@check
def generate():
    """generate and generate_stream: text_input in, text_output out (the generate extension)"""
    answer = httpx.post(f"{REST}/v2/models/tensors/generate", json={"text_input": TEXT})
    assert answer.status_code == 200 and answer.json()["text_output"] == TEXT, answer.text
    events, headers = stream("/v2/models/tensors/generate_stream", {"text_input": TEXT, "parameters": {"pause": 60}})
    assert "".join(json.loads(sse.data)["text_output"] for _, sse in events) == TEXT, events
    one_by_one([at for at, _ in events], 0.06)


@check
def generate_with_inputs():
    """generate: an ordinary inference request (MLServer's meaning)"""
    answer = httpx.post(f"{REST}/v2/models/tensors/generate", json=body(TEXT))
    assert answer.status_code == 200 and answer.json()["outputs"][0]["data"] == [TEXT], answer.text


def leaves(path, content, run):
    with httpx.Client(timeout=20) as client:
        with connect_sse(client, "POST", f"{REST}{path}", json=content, headers={}) as source:
            events = source.iter_sse()
            for _ in range(3):
                next(events)
            left = time.time()
    run.stops(left)


@check
def cut_infer_stream():
    """infer_stream: a cut connection stops the handler within a second"""
    run = Run()
    leaves("/v2/models/count/infer_stream", body(run.text), run)


@check
def cut_generate_stream():
    """generate_stream: a cut connection stops the handler within a second"""
    run = Run()
    leaves("/v2/models/count/generate_stream", {"text_input": run.text}, run)


@check
def cut_unary():
    """infer: a client that leaves stops the handler within a second"""
    run = Run()
    raises(httpx.ReadTimeout, lambda: httpx.post(f"{REST}/v2/models/count/infer", json=body(run.text), timeout=0.5))
    run.stops(time.time())


@check
def concurrent():
    """infer_stream: eight streams of one model progress together, and infer is answered meanwhile"""
    results = [None] * 8

    def read(index):
        results[index] = stream("/v2/models/tensors/infer_stream", body(TEXT, pause=300))[0]

    threads = [threading.Thread(target=read, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    answer = httpx.post(f"{REST}/v2/models/tensors/infer", json=body("meanwhile"))
    answered = time.time()
    for thread in threads:
        thread.join()
    assert answer.status_code == 200 and all(result is not None for result in results)
    assert all("".join(words(result)) == TEXT for result in results)
    assert max(result[0][0] for result in results) < min(result[-1][0] for result in results), "not together"
    assert answered < max(result[-1][0] for result in results), "infer waited for the streams"


@check
def two_workers():
    """infer_stream: one by one with two workers, too"""
    events, _ = stream("/v2/models/twins/infer_stream", body(TEXT, pause=60))
    assert "".join(words(events)) == TEXT
    one_by_one([at for at, _ in events], 0.06)


done()
