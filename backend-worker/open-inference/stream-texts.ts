import { halfAtEnd, WholeTexts } from '../../common/texts.ts'
import type { InferenceResponse, OutputTensor } from './types.ts'

/**
 * The texts of the responses of one stream: half a character at the end of an element waits for the same
 * element of the next response.
 */
export class StreamTexts {
  /** By the name of the output: its elements that end with a half. */
  readonly #waiting = new Map<string, WholeTexts<number>>()
  #last: InferenceResponse | undefined

  /** The response with whole characters. */
  next(response: InferenceResponse): InferenceResponse {
    // What is not a response is refused later.
    if (!Array.isArray((response as Partial<InferenceResponse> | undefined)?.outputs)) return response
    if (this.#waiting.size === 0 && !response.outputs.some(isCut)) return response
    this.#last = response
    const outputs = response.outputs.map((output) => {
      const texts = this.#waiting.get(output.name) ?? new WholeTexts()
      const whole = withTexts(output, (text, i) => texts.next(i, text))
      if (texts.waits) this.#waiting.set(output.name, texts)
      else this.#waiting.delete(output.name)
      return whole
    })
    return { ...response, outputs }
  }

  /** One more response, in which each half that still waits is U+FFFD; undefined without any. */
  end(): InferenceResponse | undefined {
    if (this.#waiting.size === 0) return undefined
    const outputs = this.#last!.outputs.map((output) => {
      const rest = new Map(this.#waiting.get(output.name)?.end())
      return withTexts(output, (_text, i) => rest.get(i) ?? '')
    })
    return { ...this.#last!, outputs }
  }
}

function isCut({ data }: OutputTensor): boolean {
  return Array.isArray(data) && data.some((each) => typeof each === 'string' && halfAtEnd(each) !== '')
}

function withTexts(output: OutputTensor, textOf: (text: string, index: number) => string): OutputTensor {
  const { data } = output
  if (!Array.isArray(data)) return output
  const whole = (data as unknown[]).map((each, i) => (typeof each === 'string' ? textOf(each, i) : each))
  return { ...output, data: whole }
}
