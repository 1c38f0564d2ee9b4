"""Structured output: instructor, outlines, and guidance, with a schema that has Optional and Union."""

import warnings
from typing import Literal, Optional, Union

import guidance
import instructor
import openai
import outlines
from checks import REST, check, done
from pydantic import BaseModel

# Partial objects are not yet of the type.
warnings.filterwarnings("ignore", "Pydantic serializer warnings")
client = openai.OpenAI(base_url=f"{REST}/v1", api_key="none", max_retries=0, timeout=60)
MODEL = "tiny-llama"
ASKED = "Robert, nickname Bobby, is forty-four."
MESSAGES = [{"role": "user", "content": ASKED}]
TRIES = 40


class House(BaseModel):
    kind: Literal["house"]
    rooms: Literal[1, 2]


class Tent(BaseModel):
    kind: Literal["tent"]
    colour: Optional[Literal["red"]]


class Person(BaseModel):
    """Every field but `name` has several shapes."""

    name: Literal["Robert", "Ann"]
    nickname: Optional[Literal["Bobby", "Annie"]]
    age: Union[Literal["young", "old"], bool]
    home: Union[House, Tent]


def reaches_all(ask):
    """Answers of several seeds have each shape that the model finds likely enough: text or null, and either object."""
    missing = {"nickname": {type(None), str}, "home": {House, Tent}}
    for seed in range(TRIES):
        person = ask(seed)
        assert isinstance(person, Person), person
        for field, shapes in missing.items():
            shapes.discard(type(getattr(person, field)))
        if not any(missing.values()):
            return
    raise AssertionError(f"not among {TRIES} answers: {missing}")


def instructed(mode):
    patched = instructor.from_openai(client, mode=mode)

    def ask(seed):
        return patched.chat.completions.create(
            model=MODEL, messages=MESSAGES, response_model=Person, max_retries=0, max_tokens=120, seed=seed, temperature=2
        )

    return ask


@check
def instructor_schema():
    """instructor: a schema with Optional and Union, each shape of which can be the answer"""
    reaches_all(instructed(instructor.Mode.JSON_SCHEMA))


@check
def instructor_tools():
    """instructor: the same as a tool that must be called"""
    reaches_all(instructed(instructor.Mode.TOOLS))


@check
def instructor_partial():
    """instructor: a stream of partial objects ends with the whole"""
    patched = instructor.from_openai(client, mode=instructor.Mode.JSON_SCHEMA)
    stream = patched.chat.completions.create_partial(
        model=MODEL, messages=MESSAGES, response_model=Person, max_retries=0, max_tokens=120, temperature=0
    )
    parts = [part.model_dump() for part in stream]
    assert len(parts) > 1 and Person.model_validate(parts[-1]), parts[-1]


@check
def outlines_schema():
    """outlines: the same schema, each shape of which can be the answer"""
    model = outlines.from_openai(client, MODEL)
    reaches_all(lambda seed: Person.model_validate_json(model(ASKED, Person, max_tokens=120, seed=seed, temperature=2)))


@check
def outlines_stream():
    """outlines: a stream of text that is an object in the end, and free text"""
    model = outlines.from_openai(client, MODEL)
    parts = list(model.stream(ASKED, Person, max_tokens=120, temperature=0))
    assert len(parts) > 1 and Person.model_validate_json("".join(parts)), parts
    assert model("In the beginning", max_tokens=8)


@check
def guidance_text():
    """guidance: a captured text that stops where it is told"""
    model = guidance.models.OpenAI(MODEL, base_url=f"{REST}/v1", api_key="none", echo=False)
    with guidance.user():
        model += "In the beginning"
    with guidance.assistant():
        model += guidance.gen("text", max_tokens=12)
    assert model["text"], str(model)


@check
def guidance_schema():
    """guidance: the same schema"""
    model = guidance.models.OpenAI(MODEL, base_url=f"{REST}/v1", api_key="none", echo=False)
    with guidance.user():
        model += ASKED
    with guidance.assistant():
        model += guidance.json("person", schema=Person)
    assert Person.model_validate_json(model["person"]), model["person"]


done()
