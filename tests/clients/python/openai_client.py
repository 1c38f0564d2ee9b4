"""The official OpenAI client for Python."""

import asyncio
import os
import time

import openai
from checks import REST, check, done, one_by_one, raises

client = openai.OpenAI(base_url=f"{REST}/v1", api_key="none", max_retries=0, timeout=60)
prefixed = openai.OpenAI(base_url=f"{REST}/openai/v1", api_key="none", max_retries=0, timeout=60)
TEXT = "one two three four five six"
HELLO = [{"role": "user", "content": "In the beginning"}]


def said(text):
    return [{"role": "user", "content": text}]


def state(id):
    answer = client.completions.create(model="chat", prompt=id)
    return answer.choices[0].text


def stops(id, left):
    deadline = time.time() + 5
    while time.time() < deadline:
        word, *at = state(id).split()
        if word != "running":
            assert word == "cancelled", word
            took = float(at[0]) - left * 1000
            assert took <= 1000, f"the handler was told {took:.0f} ms after the client left"
            return
        time.sleep(0.01)
    raise AssertionError("still running 5 s after the client left")


@check
def models():
    """openai-python: the list of models, one model, an unknown one, under /v1 and /openai/v1"""
    for each in (client, prefixed):
        assert {"chat", "tiny-llama", "echo"} <= {model.id for model in each.models.list()}
        assert each.models.retrieve("chat").id == "chat"
        raises(openai.NotFoundError, lambda: each.models.retrieve("nobody"))


@check
def chat():
    """openai-python: a whole chat completion with usage, on the bundled language model"""
    for each in (client, prefixed):
        answer = each.chat.completions.create(model="tiny-llama", messages=HELLO, max_tokens=8, temperature=0)
        assert answer.object == "chat.completion" and answer.choices[0].message.role == "assistant"
        assert answer.choices[0].finish_reason in ("stop", "length") and answer.choices[0].message.content is not None
        assert 0 < answer.usage.completion_tokens <= 8 and answer.usage.prompt_tokens > 0, answer.usage
        assert answer.usage.total_tokens == answer.usage.completion_tokens + answer.usage.prompt_tokens


@check
def chat_stream():
    """openai-python: a chat stream says the same as the whole; role first, one finish, then usage with no choices"""
    asked = {"model": "tiny-llama", "messages": HELLO, "max_tokens": 12, "temperature": 0}
    whole = client.chat.completions.create(**asked)
    chunks = list(client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant" and len({chunk.id for chunk in chunks}) == 1
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content, text
    finishes = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices and chunk.choices[0].finish_reason]
    assert finishes == [whole.choices[0].finish_reason], finishes
    assert chunks[-1].choices == [] and chunks[-1].usage == whole.usage, chunks[-1]


@check
def no_usage():
    """openai-python: without include_usage no chunk is without choices"""
    chunks = list(client.chat.completions.create(model="tiny-llama", messages=HELLO, max_tokens=4, stream=True))
    assert all(chunk.choices and chunk.usage is None for chunk in chunks), chunks[-1]


@check
def several_choices():
    """openai-python: n=2 in a stream: indices 0 and 1, one finish each"""
    stream = client.chat.completions.create(model="tiny-llama", messages=HELLO, n=2, max_tokens=6, stream=True)
    finishes = [choice.index for chunk in stream for choice in chunk.choices if choice.finish_reason]
    assert sorted(finishes) == [0, 1], finishes


@check
def logprobs():
    """openai-python: log probabilities with alternatives"""
    answer = client.chat.completions.create(model="tiny-llama", messages=HELLO, max_tokens=4, logprobs=True, top_logprobs=2, temperature=0)
    content = answer.choices[0].logprobs.content
    assert content and all(each.logprob <= 0 and len(each.top_logprobs) == 2 for each in content), content


@check
def one_at_a_time():
    """openai-python: chunks of a chat arrive one by one"""
    times = []
    text = ""
    for chunk in client.chat.completions.create(model="chat", messages=said(TEXT), stream=True, extra_body={"pause": 60}):
        if chunk.choices and chunk.choices[0].delta.content:
            times.append(time.time())
            text += chunk.choices[0].delta.content
    assert text == TEXT, text
    one_by_one(times, 0.06)


@check
def tool_call():
    """openai-python: a tool that must be called is called, whole and as a stream"""
    tool = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}}
    asked = {"model": "tiny-llama", "messages": HELLO, "tools": [tool], "max_tokens": 60, "temperature": 0}
    asked["tool_choice"] = {"type": "function", "function": {"name": "add"}}
    call = client.chat.completions.create(**asked).choices[0].message.tool_calls[0]
    assert call.function.name == "add" and call.id, call
    deltas = [delta for chunk in client.chat.completions.create(**asked, stream=True) for choice in chunk.choices for delta in choice.delta.tool_calls or []]
    assert deltas[0].index == 0 and deltas[0].id and deltas[0].function.name == "add", deltas
    assert "".join(delta.function.arguments or "" for delta in deltas) == call.function.arguments


@check
def completions():
    """openai-python: legacy completions, whole and as a stream, also of a handler of TorchServe's kind"""
    asked = {"model": "tiny-llama", "prompt": "In the beginning", "max_tokens": 8, "temperature": 0}
    whole = client.completions.create(**asked)
    text = "".join(chunk.choices[0].text for chunk in client.completions.create(**asked, stream=True) if chunk.choices)
    assert whole.object == "text_completion" and text == whole.choices[0].text != ""
    both = client.completions.create(model="echo", prompt=["hello", "world"])
    assert [choice.text for choice in both.choices] == ["hello", "world"], both


@check
def embeddings():
    """openai-python: embeddings, base64 (what the client asks for by itself) and floats are the same"""
    default = client.embeddings.create(model="tiny-llama", input=["one", "two"])
    floats = client.embeddings.create(model="tiny-llama", input=["one", "two"], encoding_format="float")
    assert [each.index for each in default.data] == [0, 1] and len(default.data[0].embedding) > 8
    near = lambda a, b: all(abs(x - y) < 1e-5 for x, y in zip(a, b, strict=True))
    assert all(near(a.embedding, b.embedding) for a, b in zip(default.data, floats.data, strict=True))


@check
def errors():
    """openai-python: an unknown model is NotFoundError, a bad request BadRequestError, also with stream=True"""
    for stream in (False, True):
        error = raises(openai.NotFoundError, lambda: client.chat.completions.create(model="nobody", messages=HELLO, stream=stream))
        assert error.code == "model_not_found" and "nobody" in error.message, error
        raises(openai.BadRequestError, lambda: client.chat.completions.create(model="chat", messages="no list", stream=stream))
        raises(openai.InternalServerError, lambda: client.chat.completions.create(model="chat", messages=said("boom"), stream=stream))


@check
def once():
    """openai-python: a handler that fails runs once, although the client may retry"""
    retrying = client.with_options(max_retries=2)
    before = int(state("calls"))
    raises(openai.InternalServerError, lambda: retrying.chat.completions.create(model="chat", messages=said("boom")))
    assert int(state("calls")) == before + 1


@check
def after_first():
    """openai-python: an error after the first chunk raises APIError, not a clean end"""
    got = []

    def read():
        for chunk in client.chat.completions.create(model="chat", messages=said("one two boom"), stream=True):
            got.extend(choice.delta.content for choice in chunk.choices if choice.delta.content)

    error = raises(openai.APIError, read)
    assert got == ["one ", "two "] and "boom" in error.message, (got, error)


@check
def close_stream():
    """openai-python: closing a chat stream stops the handler within a second"""
    stream = client.chat.completions.create(model="chat", messages=said("word " * 500), stream=True, user="py-stream", extra_body={"pause": 20})
    for _, chunk in zip(range(4), stream):
        assert chunk.choices
    left = time.time()
    stream.close()
    stops("py-stream", left)


@check
def leave_unary():
    """openai-python: a client that gives up waiting for a whole answer stops the handler within a second"""
    asked = {"model": "chat", "messages": said("word " * 500), "user": "py-unary", "extra_body": {"pause": 20}}
    raises(openai.APITimeoutError, lambda: client.with_options(timeout=0.5).chat.completions.create(**asked))
    stops("py-unary", time.time())


@check
async def concurrent():
    """openai-python: eight chat streams of one loaded model progress together"""
    async with openai.AsyncOpenAI(base_url=f"{REST}/v1", api_key="none", max_retries=0) as aio:

        async def one():
            stream = await aio.chat.completions.create(model="chat", messages=said(TEXT), stream=True, extra_body={"pause": 60})
            return [time.time() async for chunk in stream if chunk.choices and chunk.choices[0].delta.content]

        times = await asyncio.gather(*(one() for _ in range(8)))
    assert all(len(each) == 6 for each in times), [len(each) for each in times]
    assert max(each[0] for each in times) < min(each[-1] for each in times), "not together"


@check
def tensors_handler():
    """openai-python: a handler of the Open Inference Protocol serves completions"""
    stream = client.completions.create(model="tensors", prompt=TEXT, stream=True)
    assert "".join(chunk.choices[0].text for chunk in stream if chunk.choices) == TEXT


done()
