"""Agents that call tools: pydantic-ai, openai-agents, and smolagents."""

from contextlib import asynccontextmanager
from typing import Literal, Optional

import agents
import openai
import smolagents
from checks import REST, check, done
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

BASE = f"{REST}/v1"
TEXT = "one two three four five six"
City = Literal["Paris"]


class Visit(BaseModel):
    city: City
    guest: Optional[Literal["Ann", "Bob"]]


@asynccontextmanager
async def pydantic_agent(model, **more):
    async with openai.AsyncOpenAI(base_url=BASE, api_key="none", max_retries=0) as client:
        yield Agent(OpenAIChatModel(model, provider=OpenAIProvider(openai_client=client)), retries=0, **more)


SMALL = {"max_tokens": 80, "temperature": 0.0}


@check
async def pydantic_texts():
    """pydantic-ai: a whole answer, and a stream"""
    async with pydantic_agent("chat") as agent:
        assert (await agent.run(TEXT)).output == TEXT
        async with agent.run_stream(TEXT) as answer:
            parts = [part async for part in answer.stream_text(delta=True, debounce_by=None)]
    assert "".join(parts) == TEXT and len(parts) > 1, parts


@check
async def pydantic_output():
    """pydantic-ai: an object of a type with Optional, by a tool and by a schema"""
    for output in (Visit, NativeOutput(Visit)):
        async with pydantic_agent("tiny-llama", output_type=output, model_settings=SMALL) as agent:
            answer = await agent.run("Who visits?")
        assert isinstance(answer.output, Visit) and answer.usage.output_tokens > 0, answer


@check
async def pydantic_tool():
    """pydantic-ai: a tool is called, and its result goes back to the model"""
    # Only the first request of a run must call the tool.
    steps = lambda context: {**SMALL, "tool_choice": "required" if context.run_step == 1 else "none"}
    async with pydantic_agent("tiny-llama", model_settings=steps) as agent:

        @agent.tool_plain
        def weather(city: City) -> str:
            """The weather of a city."""
            return f"21 degrees in {city}"

        run = await agent.run("The weather?")
    returned = [part.content for message in run.all_messages() for part in message.parts if part.part_kind == "tool-return"]
    assert returned == ["21 degrees in Paris"] and isinstance(run.output, str), run.all_messages()


agents.set_tracing_disabled(True)


@asynccontextmanager
async def openai_agent(model, **more):
    async with openai.AsyncOpenAI(base_url=BASE, api_key="none", max_retries=0) as client:
        yield agents.Agent(name="helper", model=agents.OpenAIChatCompletionsModel(model, client), **more)


@check
async def agents_texts():
    """openai-agents: a whole answer, and a stream"""
    async with openai_agent("chat") as agent:
        assert (await agents.Runner.run(agent, TEXT)).final_output == TEXT
        run = agents.Runner.run_streamed(agent, TEXT)
        events = [event.data async for event in run.stream_events() if event.type == "raw_response_event"]
    parts = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(parts) == TEXT == run.final_output and len(parts) > 1, parts


@check
async def agents_tool():
    """openai-agents: a tool is called, and its result goes back to the model"""

    @agents.function_tool
    def weather(city: City) -> str:
        """The weather of a city."""
        return f"21 degrees in {city}"

    # The client asks for a call in the first turn only.
    settings = agents.ModelSettings(tool_choice="required", max_tokens=80, temperature=0)
    async with openai_agent("tiny-llama", tools=[weather], model_settings=settings) as agent:
        run = await agents.Runner.run(agent, "The weather?", max_turns=8)
    outputs = [item.output for item in run.new_items if item.type == "tool_call_output_item"]
    assert outputs and set(outputs) == {"21 degrees in Paris"}, run.new_items


@check
async def agents_output():
    """openai-agents: an object of a type with Optional"""
    settings = agents.ModelSettings(max_tokens=80, temperature=0)
    async with openai_agent("tiny-llama", output_type=Visit, model_settings=settings) as agent:
        assert isinstance((await agents.Runner.run(agent, "Who visits?")).final_output, Visit)


def smol(model):
    asked = {"flatten_messages_as_text": True, "max_tokens": 80, "temperature": 0}
    return smolagents.OpenAIModel(model, api_base=BASE, api_key="none", **asked)


@check
def smolagents_texts():
    """smolagents: a whole answer, and a stream"""
    messages = [{"role": "user", "content": [{"type": "text", "text": TEXT}]}]
    # It reads the usage of whole answers, which the model `chat` does not count.
    answer = smol("tiny-llama").generate(messages)
    assert answer.content and 0 < answer.token_usage.output_tokens <= 80, answer
    parts = [delta.content for delta in smol("chat").generate_stream(messages) if delta.content]
    assert "".join(parts) == TEXT and len(parts) > 1, parts


@check
def smolagents_tool():
    """smolagents: a model that must call a tool calls it, with arguments that fit"""

    class Weather(smolagents.Tool):
        name = "weather"
        description = "The weather of a city."
        inputs = {"city": {"type": "string", "description": "a city", "enum": ["Paris"]}}
        output_type = "string"

        def forward(self, city: str) -> str:
            return f"21 degrees in {city}"

    said = [{"role": "user", "content": [{"type": "text", "text": "The weather?"}]}]
    (call,) = smol("tiny-llama").generate(said, tools_to_call_from=[Weather()]).tool_calls
    assert call.function.name == "weather", call


done()
