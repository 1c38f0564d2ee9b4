import type { ServeError } from '../../../common/errors.ts'
import { splitElements } from '../../../common/tensors/bytes.ts'
import { invalid, type RawTensor } from '../../../common/tensors/tensor.ts'

/** The inputs of a request as strings, by name. The shapes `[n]` and `[n, 1]` are equal. */
export class TextTensors {
  readonly #inputs: readonly RawTensor[]

  constructor(inputs: readonly RawTensor[]) {
    this.#inputs = inputs
  }

  /** Whether there is an input with this name and datatype BYTES. */
  has(name: string): boolean {
    return this.#inputs.some((input) => input.name === name && input.datatype === 'BYTES')
  }

  /**
   * The entries of an input; undefined if there is none. With `count` it must have as many entries.
   * @throws ServeError INVALID_TENSOR
   */
  texts(name: string, count?: number): string[] | undefined {
    const input = this.#inputs.find((each) => each.name === name)
    if (input === undefined) return undefined
    if (input.datatype !== 'BYTES') throw this.refusal(name, 'must have the datatype BYTES')
    const texts = splitElements(input).map((element) => element.toString())
    if (count === undefined || texts.length === count) return texts
    throw this.refusal(name, `must have ${count} entries, not ${texts.length}`)
  }

  /** The entry of an input that must have exactly one. @throws ServeError INVALID_TENSOR */
  text(name: string): string | undefined {
    return this.texts(name, 1)?.[0]
  }

  refusal(name: string, why: string): ServeError {
    return invalid(name, `it ${why}`)
  }
}
