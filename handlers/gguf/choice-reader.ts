import type { ChatDelta } from 'torchserve-ts'
import { looksLikeCall, ToolCallReader } from './tool-calls.ts'
import type { ToolUse } from './tools.ts'

/** Separates the text of a chat model's answer from its tool calls. */
export class ChoiceReader {
  readonly #calls = new ToolCallReader()
  /** Undefined: not known yet. */
  #calling: boolean | undefined
  #beginning: string
  /** Held back while it may still be a tool call. */
  #held = ''

  /** @param beginning start of the answer, already in the prompt */
  constructor({ tools, forced }: ToolUse, beginning: string) {
    if (forced) this.#calling = true
    else if (tools.length === 0) this.#calling = false
    this.#beginning = beginning
  }

  /** Whether a tool was called. */
  get called(): boolean {
    return this.#calls.calls > 0
  }

  push(piece: string): ChatDelta[] {
    const text = this.#beginning + piece
    this.#beginning = ''
    if (this.#calling === false) return content(text)
    if (!this.called) this.#held += text
    if (this.#calling === undefined) {
      this.#calling = looksLikeCall(this.#held)
      if (this.#calling === undefined) return []
      const held = this.#held
      if (!this.#calling) return content(held)
      return this.#call(held)
    }
    return this.#call(text)
  }

  /** The last piece. Includes held-back text that was not a tool call after all. */
  end(text: string): ChatDelta[] {
    const deltas = this.push(text)
    return this.called || this.#calling === false ? deltas : [...deltas, ...content(this.#held)]
  }

  #call(text: string): ChatDelta[] {
    return this.#calls.push(text).map((call) => ({ tool_calls: [call] }))
  }
}

function content(text: string): ChatDelta[] {
  return text === '' ? [] : [{ content: text }]
}
