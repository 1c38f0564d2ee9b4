import type { HttpForm } from './http.ts'
import { events, json, lines } from './readers.ts'

type Json = Record<string, unknown>

const inference = (input: string) => ({
  inputs: [
    { name: 'data', shape: [1], datatype: 'BYTES', parameters: { content_type: 'str' }, data: [input] },
  ],
})
const message = (input: string) => [{ role: 'user', content: input }]

function outputText({ outputs }: Json): string | undefined {
  const data = (outputs as { data?: unknown[] }[] | undefined)?.[0]?.data
  return data === undefined ? undefined : String(data.flat()[0])
}

function generated({ text_output: text }: Json): string | undefined {
  return typeof text === 'string' ? text : undefined
}

interface Choice {
  text?: string
  delta?: { content?: string }
  message?: { content?: string }
}

/**
 * Trimmed text, because a leading or trailing space can come with the neighbouring item: it may begin a stop
 * text.
 */
function choiceText({ choices }: Json): string | undefined {
  const choice = (choices as Choice[] | undefined)?.[0]
  return (choice?.text ?? choice?.delta?.content ?? choice?.message?.content)?.trim()
}

/** The dialects over HTTP. `input` is the text that the model gets. */
export const FORMS: readonly HttpForm[] = [
  {
    name: 'TorchServe /predictions',
    path: (model) => `/predictions/${model}`,
    body: (_model, input) => JSON.parse(input) as unknown,
    reader: lines,
  },
  {
    name: 'V2 infer_stream',
    path: (model) => `/v2/models/${model}/infer_stream`,
    body: (_model, input) => inference(input),
    reader: events(outputText),
  },
  {
    name: 'V2 generate_stream',
    path: (model) => `/v2/models/${model}/generate_stream`,
    body: (_model, input) => ({ text_input: input }),
    reader: events(generated),
  },
  {
    name: 'OpenAI completions stream',
    path: () => '/v1/completions',
    body: (model, input) => ({ model, prompt: input, stream: true }),
    reader: events(choiceText),
  },
  {
    name: 'OpenAI chat stream',
    path: () => '/v1/chat/completions',
    body: (model, input) => ({ model, messages: message(input), stream: true }),
    reader: events(choiceText),
  },
  {
    name: 'TorchServe /predictions whole',
    whole: true,
    path: (model) => `/predictions/${model}`,
    body: (_model, input) => ({ ...(JSON.parse(input) as Json), stream: false }),
    reader: lines,
  },
  {
    name: 'V2 infer',
    whole: true,
    path: (model) => `/v2/models/${model}/infer`,
    body: (_model, input) => inference(input),
    reader: json(outputText),
  },
  {
    name: 'V2 generate',
    whole: true,
    path: (model) => `/v2/models/${model}/generate`,
    body: (_model, input) => ({ text_input: input }),
    reader: json(generated),
  },
  {
    name: 'OpenAI completions',
    whole: true,
    path: () => '/v1/completions',
    body: (model, input) => ({ model, prompt: input }),
    reader: json(choiceText),
  },
  {
    name: 'OpenAI chat',
    whole: true,
    path: () => '/v1/chat/completions',
    body: (model, input) => ({ model, messages: message(input) }),
    reader: json(choiceText),
  },
]

const tensor = (name: string, text: string) => ({ name, shape: [1], datatype: 'BYTES', data: [text] })
const chat = (input: string) => ({
  inputs: [tensor('role', 'user'), tensor('content', input), tensor('type', 'text')],
})

function chatText({ outputs = [] }: Json): string | undefined {
  const content = (outputs as { name: string; data: string[] }[]).find(({ name }) => name === 'content')
  return content?.data[0]?.trim()
}

/** A chat as tensors in Seldon's format (docs/open-inference.md), for handlers that answer chats. */
export const CHAT_FORMS: readonly HttpForm[] = [
  {
    name: 'V2 infer_stream of a chat',
    path: (model) => `/v2/models/${model}/infer_stream`,
    body: (_model, input) => chat(input),
    reader: events(chatText),
  },
  {
    name: 'V2 infer of a chat',
    whole: true,
    path: (model) => `/v2/models/${model}/infer`,
    body: (_model, input) => chat(input),
    reader: json(chatText),
  },
]
