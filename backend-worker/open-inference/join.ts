import { ServeError } from '../../protocol/errors.ts'
import { joinElements, splitElements } from '../../protocol/tensors/bytes.ts'
import type { RawTensor } from '../../protocol/tensors/tensor.ts'
import type { RawResponse } from './messages.ts'

/** Of the texts of one output together. */
const MAX_BYTES = 64 * 1024 * 1024

/**
 * The responses of a stream as one, for a client that asked for no stream: the only one as it is; of several with the same outputs, each
 * one BYTES element, the texts joined. @throws ServeError INVALID_OUTPUT when they cannot be joined, RESPONSE_TOO_LARGE
 */
export function joinResponses(responses: readonly RawResponse[]): RawResponse {
  const [first, ...others] = responses
  if (first === undefined) throw new ServeError('INVALID_OUTPUT', 'The handler gave no response')
  if (others.length === 0) return first
  const outputs = first.outputs.map((output, i) => joined([output, ...others.map((each) => each.outputs[i])]))
  if (others.every((each) => each.outputs.length === outputs.length)) return { ...first, outputs }
  throw notOne()
}

function joined(pieces: readonly (RawTensor | undefined)[]): RawTensor {
  const first = pieces[0]!
  const elements = pieces.map((piece) => {
    const [element, ...more] =
      piece?.name === first.name && piece.datatype === 'BYTES' ? splitElements(piece) : []
    if (element === undefined || more.length > 0) throw notOne()
    return element
  })
  const bytes = elements.reduce((sum, element) => sum + element.byteLength, 0)
  if (bytes <= MAX_BYTES) return { ...first, data: joinElements([Buffer.concat(elements)]) }
  const message = `The responses of the stream together are larger than ${MAX_BYTES} bytes: ask for a stream`
  throw new ServeError('RESPONSE_TOO_LARGE', message)
}

function notOne(): ServeError {
  return new ServeError('INVALID_OUTPUT', 'The model gives more than one response: ask it for a stream')
}
