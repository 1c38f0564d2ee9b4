import { eventReader, type HttpForm } from './http.ts'

interface Outputs {
  outputs?: { data?: unknown[] }[]
}

const firstOutput = (event: Outputs): string | undefined => {
  const data = event.outputs?.[0]?.data
  return data === undefined ? undefined : String(data.flat()[0])
}
const asText = (text: string): string | undefined => (text === '' ? undefined : text)

/** The dialects over HTTP. `input` is the text that the model gets. */
export const FORMS: readonly HttpForm[] = [
  {
    name: 'TorchServe /predictions',
    path: (model) => `/predictions/${model}`,
    body: (_model, input) => JSON.parse(input) as unknown,
    reader: () => {
      let rest = ''
      return (piece) => {
        // A report of progress ends without a newline.
        if (rest === '' && piece.startsWith('{')) return [piece]
        const lines = (rest + piece).split('\n')
        rest = lines.pop()!
        return lines
      }
    },
  },
  {
    name: 'V2 infer_stream',
    path: (model) => `/v2/models/${model}/infer_stream`,
    body: (_model, input) => ({
      inputs: [
        { name: 'data', shape: [1], datatype: 'BYTES', parameters: { content_type: 'str' }, data: [input] },
      ],
    }),
    reader: eventReader((event) => asText(firstOutput(event) ?? '')),
  },
  {
    name: 'V2 generate_stream',
    path: (model) => `/v2/models/${model}/generate_stream`,
    body: (_model, input) => ({ text_input: input }),
    reader: eventReader(({ text_output: text }) => (typeof text === 'string' ? asText(text) : undefined)),
  },
  {
    name: 'OpenAI completions',
    path: () => '/v1/completions',
    body: (model, input) => ({ model, prompt: input, stream: true }),
    reader: eventReader(({ choices }) => asText((choices as { text?: string }[])[0]?.text ?? '')),
  },
]
