"""What applications in Python put on top of OpenAI's API: LangChain, LlamaIndex, LiteLLM, haystack, and `llm`."""

from typing import Literal

import litellm
from checks import REST, check, done, raises
from haystack.components.embedders import OpenAITextEmbedder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import Tool
from haystack.utils import Secret
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from llama_index.core.llms import ChatMessage as LlamaMessage
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike
from llm.default_plugins.openai_models import Chat
from pydantic import BaseModel

litellm.suppress_debug_info = True
BASE = f"{REST}/v1"
TEXT = "one two three four five six"
WORDS = ["one ", "two ", "three ", "four ", "five ", "six"]


class Weather(BaseModel):
    """The weather of a city."""

    city: Literal["Paris"]


def differ(a, b):
    assert len(a) == len(b) > 8 and a != b and any(a), (a[:4], b[:4])


def langchain(model, **more):
    return ChatOpenAI(model=model, base_url=BASE, api_key="none", max_retries=0, **more)


@check
def langchain_texts():
    """LangChain: a text, a stream, and several texts at once"""
    chat = langchain("chat")
    assert chat.invoke(TEXT).content == TEXT
    assert [chunk.content for chunk in chat.stream(TEXT) if chunk.content] == WORDS
    assert [answer.content for answer in chat.batch(["one", "two", "three"])] == ["one", "two", "three"]


@check
def langchain_tools():
    """LangChain: structured output, and a tool that must be called"""
    model = langchain("tiny-llama", max_tokens=60, temperature=0)
    assert model.with_structured_output(Weather).invoke("Where?") == Weather(city="Paris")
    call = model.bind_tools([Weather], tool_choice="any").invoke("The weather?").tool_calls[0]
    assert (call["name"], call["args"]) == ("Weather", {"city": "Paris"}), call


@check
def langchain_embeddings():
    """LangChain: embeddings"""
    # With this False it sends texts; else it would fetch OpenAI's tokenizer.
    embeddings = OpenAIEmbeddings(model="tiny-llama", base_url=BASE, api_key="none", check_embedding_ctx_length=False)
    differ(*embeddings.embed_documents(["a cat", "a dog"]))


def llama_index(model):
    return OpenAILike(model=model, api_base=BASE, api_key="none", is_chat_model=True, max_retries=0, max_tokens=20, temperature=0)


@check
def llama_index_chat():
    """LlamaIndex: a whole chat, and a stream that says the same"""
    messages = [LlamaMessage(role="user", content="In the beginning")]
    whole = llama_index("tiny-llama").chat(messages).message.content
    chunks = list(llama_index("tiny-llama").stream_chat(messages))
    assert chunks[-1].message.content == whole == "".join(chunk.delta for chunk in chunks) != "", whole
    assert [chunk.delta for chunk in llama_index("chat").stream_complete(TEXT) if chunk.delta] == WORDS


@check
def llama_index_completions():
    """LlamaIndex: a model without chat is asked by completions"""
    model = llama_index("tiny-llama").model_copy(update={"is_chat_model": False})
    whole = model.complete("In the beginning").text
    assert "".join(chunk.delta for chunk in model.stream_complete("In the beginning")) == whole != "", whole


@check
def llama_index_embeddings():
    """LlamaIndex: embeddings of texts and of a query"""
    model = OpenAILikeEmbedding(model_name="tiny-llama", api_base=BASE, api_key="none", max_retries=0)
    cat, dog = model.get_text_embedding_batch(["a cat", "a dog"])
    differ(cat, dog)
    query = model.get_query_embedding("a cat")
    assert all(abs(a - b) < 1e-4 for a, b in zip(query, cat, strict=True))


LITE = {"api_base": BASE, "api_key": "none", "num_retries": 0}


def lite(content, model="openai/chat", **more):
    return litellm.completion(model=model, messages=[{"role": "user", "content": content}], **LITE, **more)


@check
def litellm_chat():
    """LiteLLM: a whole chat with usage, a stream, and an error as its own class"""
    answer = lite("In the beginning", "openai/tiny-llama", max_tokens=8)
    assert 0 < answer.usage.completion_tokens <= 8 and answer.choices[0].finish_reason in ("stop", "length"), answer
    assert lite(TEXT).choices[0].message.content == TEXT
    assert "".join(chunk.choices[0].delta.content or "" for chunk in lite(TEXT, stream=True)) == TEXT
    raises(litellm.NotFoundError, lambda: lite(TEXT, "openai/nobody"))
    raises(litellm.InternalServerError, lambda: lite("boom"))


@check
def litellm_tools():
    """LiteLLM: a tool that must be called, and a schema"""
    parameters = Weather.model_json_schema()
    tool = {"type": "function", "function": {"name": "weather", "parameters": parameters}}
    small = {"model": "openai/tiny-llama", "max_tokens": 60, "temperature": 0}
    (call,) = lite("The weather?", tools=[tool], tool_choice="required", **small).choices[0].message.tool_calls
    assert call.function.name == "weather" and Weather.model_validate_json(call.function.arguments), call
    assert Weather.model_validate_json(lite("Where?", response_format=Weather, **small).choices[0].message.content)


@check
def litellm_embeddings():
    """LiteLLM: embeddings"""
    data = litellm.embedding(model="openai/tiny-llama", input=["a cat", "a dog"], **LITE).data
    differ(*(each["embedding"] for each in data))


def haystack(model, **more):
    return OpenAIChatGenerator(model=model, api_base_url=BASE, api_key=Secret.from_token("none"), max_retries=0, **more)


@check
def haystack_chat():
    """haystack: a whole chat, and a stream"""
    said = [ChatMessage.from_user(TEXT)]
    assert haystack("chat").run(said)["replies"][0].text == TEXT
    words = []
    answer = haystack("chat", streaming_callback=lambda chunk: words.append(chunk.content)).run(said)["replies"][0]
    assert answer.text == TEXT and [word for word in words if word] == WORDS, words


@check
def haystack_tools():
    """haystack: a tool that must be called"""
    tool = Tool("weather", "The weather of a city.", Weather.model_json_schema(), lambda city: city)
    asked = {"tool_choice": "required", "max_tokens": 60, "temperature": 0}
    reply = haystack("tiny-llama", tools=[tool], generation_kwargs=asked).run([ChatMessage.from_user("Hi")])["replies"][0]
    (call,) = reply.tool_calls
    assert (call.tool_name, call.arguments) == ("weather", {"city": "Paris"}), call


@check
def haystack_embeddings():
    """haystack: embeddings"""
    model = OpenAITextEmbedder(model="tiny-llama", api_base_url=BASE, api_key=Secret.from_token("none"), max_retries=0)
    differ(model.run("a cat")["embedding"], model.run("a dog")["embedding"])


class Server(Chat):
    needs_key = None


@check
def llm_prompts():
    """llm: a whole text, a stream, and a second turn of a conversation"""
    assert [word for word in Server("chat", model_name="chat", api_base=BASE).prompt(TEXT) if word] == WORDS
    # It reads the usage of whole answers, which the model `chat` does not count.
    model = Server("tiny-llama", model_name="tiny-llama", api_base=BASE)
    asked = {"max_tokens": 8, "temperature": 0}
    assert model.prompt("In the beginning", stream=False, **asked).text() == model.prompt("In the beginning", **asked).text() != ""
    talk = model.conversation()
    first = talk.prompt("In the beginning", max_tokens=8)
    assert first.text() and first.usage().output > 0, first.usage()
    assert talk.prompt("And then?", max_tokens=8).usage().input > first.usage().input


@check
def llm_schema():
    """llm: a schema"""
    model = Server("tiny-llama", model_name="tiny-llama", api_base=BASE, supports_schema=True)
    assert Weather.model_validate_json(model.prompt("Where?", schema=Weather, max_tokens=40).text())


done()
