import { ServeError } from '../../common/errors.ts'
import { joinElements, splitElements } from '../../common/tensors/bytes.ts'
import { elementEnd, type RawTensor } from '../../common/tensors/tensor.ts'
import type { RawResponse } from './messages.ts'
import { exactJson } from '../../common/exact-json.ts'
import type { InferRequest } from '../../common/tensors/message.ts'

/** Maximum bytes of one output's joined text. */
const MAX_BYTES = 64 * 1024 * 1024

/**
 * Joins the responses of a stream for a unary client. A single response passes unchanged. Several must have
 * the same outputs with one BYTES element each, whose texts are joined. A stream that cannot be joined is
 * ended at once.
 * @throws ServeError INVALID_OUTPUT when the responses cannot be joined, RESPONSE_TOO_LARGE
 */
export async function joinResponses(responses: AsyncIterable<RawResponse>): Promise<RawResponse> {
  let first: RawResponse | undefined
  let texts: JoinedText[] | undefined
  for await (const response of responses) {
    if (first === undefined) {
      first = response
      continue
    }
    texts ??= first.outputs.map((output) => new JoinedText(output))
    if (response.outputs.length !== texts.length) throw notOne()
    for (const [i, text] of texts.entries()) text.add(response.outputs[i]!)
  }
  if (first === undefined) throw new ServeError('INVALID_OUTPUT', 'The handler sent no response')
  return texts === undefined ? first : { ...first, outputs: texts.map((text) => text.whole()) }
}

/** One output of all responses. */
class JoinedText {
  readonly #first: RawTensor
  readonly #pieces: Uint8Array[] = []
  #bytes = 0

  constructor(first: RawTensor) {
    this.#first = first
    this.add(first)
  }

  add(piece: RawTensor): void {
    const [element, ...more] =
      piece.name === this.#first.name && piece.datatype === 'BYTES' ? splitElements(piece) : []
    if (element === undefined || more.length > 0) throw notOne()
    this.#bytes += element.byteLength
    if (this.#bytes > MAX_BYTES) throw tooLarge()
    this.#pieces.push(element)
  }

  whole(): RawTensor {
    return { ...this.#first, data: joinElements([Buffer.concat(this.#pieces)]) }
  }
}

function notOne(): ServeError {
  return new ServeError('INVALID_OUTPUT', 'The model sends several responses; request a stream')
}

function tooLarge(): ServeError {
  const message = `The joined responses of the stream exceed ${MAX_BYTES} bytes; request a stream`
  return new ServeError('RESPONSE_TOO_LARGE', message)
}

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
