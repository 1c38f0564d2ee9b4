import type { ServeError } from '../../../common/errors.ts'
import { splitElements } from '../../../common/tensors/bytes.ts'
import { invalid, type RawTensor } from '../../../common/tensors/tensor.ts'

/** The inputs of a request as texts, by their names; shapes `[n]` and `[n, 1]` are the same. */
export class TextTensors {
  readonly #inputs: readonly RawTensor[]

  constructor(inputs: readonly RawTensor[]) {
    this.#inputs = inputs
  }

  /** Whether there is such an input, and it has text. */
  has(name: string): boolean {
    return this.#inputs.some((input) => input.name === name && input.datatype === 'BYTES')
  }

  /**
   * The entries of an input; undefined: it is not there. With `count` it must have so many. @throws
   * ServeError INVALID_TENSOR
   */
  texts(name: string, count?: number): string[] | undefined {
    const input = this.#inputs.find((each) => each.name === name)
    if (input === undefined) return undefined
    if (input.datatype !== 'BYTES') throw this.refusal(name, 'is no BYTES')
    const texts = splitElements(input).map((element) => element.toString())
    if (count === undefined || texts.length === count) return texts
    throw this.refusal(name, `has ${texts.length} entries instead of ${count}`)
  }

  /** Of an input that can have but one entry. @throws ServeError INVALID_TENSOR */
  text(name: string): string | undefined {
    return this.texts(name, 1)?.[0]
  }

  refusal(name: string, why: string): ServeError {
    return invalid(name, `it ${why}`)
  }
}
