import { exactJson } from '../../../common/exact-json.ts'
import { headOf } from '../../../common/tensors/message.ts'
import { tensorJson, withTensors } from '../../../common/tensors/to-json.ts'
import type { Answer } from './answers.ts'
import { generateJson } from './rest-generate.ts'

/** Which outputs are binary data: those that are named so, else all or none. */
interface BinaryOutputs {
  readonly all: boolean
  readonly named: ReadonlyMap<string, boolean>
}

/** How a response is written: with the generate extension, or as tensors. */
export type WireForm = 'generate' | BinaryOutputs

/** An encoded unary response. */
export interface WireAnswer {
  readonly contentType: string
  readonly body: Uint8Array
  /** Additional headers: name, value, name, value. */
  readonly headers: readonly string[]
}

const JSON_TYPE = 'application/json'

/** The response as JSON on one line, with the keys in MLServer's order. */
export function answerJson(answer: Answer): string {
  return withTensors(answerHead(answer), 'outputs', answer.outputs)
}

/** JSON, followed by binary tensors if the client requested them (Triton's binary tensor data extension). */
export function wireAnswer(answer: Answer, form: WireForm): WireAnswer {
  if (form === 'generate') return jsonAnswer(generateJson(answer))
  const raw = answer.outputs.filter(({ name }) => form.named.get(name) ?? form.all)
  if (raw.length === 0) return jsonAnswer(answerJson(answer))
  const text = withTensors(answerHead(answer), 'outputs', answer.outputs, (output) =>
    raw.includes(output) ? exactJson(headOf(output)) : tensorJson(output),
  )
  const json = Buffer.from(text)
  return {
    contentType: 'application/octet-stream',
    body: Buffer.concat([json, ...raw.map(({ data }) => data)]),
    headers: ['Inference-Header-Content-Length', String(json.byteLength)],
  }
}

function jsonAnswer(json: string): WireAnswer {
  return { contentType: JSON_TYPE, body: Buffer.from(json), headers: [] }
}

function answerHead({ modelName, modelVersion, id, parameters }: Answer): object {
  return { model_name: modelName, model_version: modelVersion, id, parameters }
}
