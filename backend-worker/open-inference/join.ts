import { ServeError } from '../../common/errors.ts'
import { joinElements, splitElements } from '../../common/tensors/bytes.ts'
import type { RawTensor } from '../../common/tensors/tensor.ts'
import type { RawResponse } from './messages.ts'

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
