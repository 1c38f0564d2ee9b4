import { randomUUID } from 'node:crypto'
import type { ToolCallDelta } from 'torchserve-ts'

/** Ways in which models start a tool call. Such text is held back from the reader. */
const OPENINGS = [
  '<tool_call>',
  '[TOOL_CALLS]',
  '<|python_tag|>',
  '{"name"',
  '{ "name"',
  '{\n"name"',
  '[{"name"',
]
const HEAD = /^\{\s*"name"\s*:\s*"([^"\\]*)"\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\{)/
const MAX_CALLS = 128

/** Whether a text is a tool call; undefined: it may become one. */
export function looksLikeCall(text: string): boolean | undefined {
  const begun = text.trimStart()
  if (OPENINGS.some((opening) => begun.startsWith(opening))) return true
  return OPENINGS.some((opening) => opening.startsWith(begun)) ? undefined : false
}

/**
 * Parses `{"name": ..., "arguments": {...}}`, one or several, with any text between, while it is generated:
 * emits a call's name as soon as it is complete, then its arguments piece by piece, verbatim.
 */
export class ToolCallReader {
  #rest = ''
  #calls = 0
  /** Number of open braces inside a call's arguments. */
  #depth = 0
  #started = false
  #quoted = false
  #escaped = false

  /** Number of calls started. */
  get calls(): number {
    return this.#calls
  }

  push(text: string): ToolCallDelta[] {
    this.#rest += text
    const deltas: ToolCallDelta[] = []
    for (;;) {
      if (this.#depth > 0) {
        const values = this.#takeArguments()
        if (values !== '') deltas.push({ index: this.#calls - 1, function: { arguments: values } })
        if (this.#depth > 0) return deltas
      }
      const begun = this.#begin()
      if (begun === undefined) return deltas
      deltas.push(begun)
    }
  }

  #begin(): ToolCallDelta | undefined {
    const brace = this.#rest.indexOf('{')
    if (brace === -1 || this.#calls >= MAX_CALLS) {
      this.#rest = ''
      return undefined
    }
    const head = HEAD.exec(this.#rest.slice(brace))
    if (head === null) return undefined
    this.#rest = this.#rest.slice(brace + head[0].length)
    this.#depth = 1
    const index = this.#calls++
    this.#started = false
    return {
      index,
      id: `call_${randomUUID().replaceAll('-', '')}`,
      type: 'function',
      function: { name: head[1]!, arguments: '' },
    }
  }

  #takeArguments(): string {
    let taken = 0
    for (; taken < this.#rest.length && this.#depth > 0; taken++) this.#see(this.#rest[taken]!)
    const values = this.#rest.slice(0, taken)
    this.#rest = this.#rest.slice(taken)
    return values
  }

  /** #depth already counts the first brace. */
  #see(character: string): void {
    if (this.#escaped) this.#escaped = false
    else if (this.#quoted && character === '\\') this.#escaped = true
    else if (character === '"') this.#quoted = !this.#quoted
    else if (this.#quoted) return
    else if (character === '{') this.#open()
    else if (character === '}') this.#depth--
  }

  #open(): void {
    if (this.#started) this.#depth++
    this.#started = true
  }
}
