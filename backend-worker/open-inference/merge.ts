import { exactJson } from '../../common/exact-json.ts'
import { elementEnd, type RawTensor } from '../../common/tensors/tensor.ts'
import type { InferRequest } from '../../common/tensors/message.ts'
import type { RawResponse } from './messages.ts'

/** Merges several requests into one by concatenating their rows, for MLServer's adaptive batching. */

/** What requests must have in common to share a call; undefined: the request cannot share one. */
export function formOf({ inputs, parameters, outputs }: InferRequest): string | undefined {
  const rows = inputs[0]?.shape[0]
  if (rows === undefined || rows === 0 || inputs.some(({ shape }) => shape[0] !== rows)) return undefined
  const forms = inputs.map(({ name, datatype, shape, parameters: own }) => [
    name,
    datatype,
    shape.slice(1),
    own,
  ])
  return exactJson([forms, parameters, outputs])
}

/** Merges requests of the same form. */
export function mergeRequests(requests: readonly InferRequest[]): InferRequest {
  const inputs = requests[0]!.inputs.map((first, i): RawTensor => {
    const parts = requests.map((request) => request.inputs[i]!)
    const rows = parts.reduce((sum, { shape }) => sum + shape[0]!, 0)
    return {
      ...first,
      shape: [rows, ...first.shape.slice(1)],
      data: Buffer.concat(parts.map(({ data }) => data)),
    }
  })
  return { ...requests[0]!, id: undefined, inputs }
}

/** Splits the response to merged requests by rows; undefined if the number of rows differs. */
export function splitResponse(
  response: RawResponse,
  requests: readonly InferRequest[],
): RawResponse[] | undefined {
  const rows = requests.map(({ inputs }) => inputs[0]!.shape[0]!)
  const total = rows.reduce((sum, each) => sum + each, 0)
  if (response.outputs.some(({ shape }) => shape[0] !== total)) return undefined
  const cut = response.outputs.map((output) => splitRows(output, rows, total))
  return requests.map(({ id }, i) => ({ ...response, id, outputs: cut.map((pieces) => pieces[i]!) }))
}

function splitRows(tensor: RawTensor, rows: readonly number[], total: number): RawTensor[] {
  const { shape, datatype, data } = tensor
  const bytesPerRow = data.byteLength / total
  const elementsPerRow = shape.slice(1).reduce((product, size) => product * size, 1)
  let at = 0
  return rows.map((count) => {
    const from = at
    if (datatype !== 'BYTES') at += count * bytesPerRow
    else for (let i = 0; i < count * elementsPerRow; i += 1) at = elementEnd(tensor.name, data, at)
    return { ...tensor, shape: [count, ...shape.slice(1)], data: data.subarray(from, at) }
  })
}
