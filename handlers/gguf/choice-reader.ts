import { randomUUID } from 'node:crypto'
import type { ChatDelta } from 'torchserve-ts'
import { beginsCall, callOf, headOf, ObjectEnd, type ToolUse } from './tools.ts'

/** Texts by which models announce calls. */
const MARKS = ['<tool_call>', '[TOOL_CALLS]', '<|python_tag|>']
const THINK = '<think>'
const THOUGHT = '</think>'
const OPENING = /<think>|<tool_call>|\[TOOL_CALLS\]|<\|python_tag\|>|(?:\[\s*)?\{/
const MAX_CALLS = 128

/**
 * Separates the text of a chat model's answer from its tool calls, wherever they begin: after a mark or
 * without one, after text or after `<think>...</think>`, inside which there are none. Without a mark an
 * object is a call if it names a tool of the request. A call's name and arguments are sent while they are
 * generated if the name comes first. Text after the first call is dropped.
 */
export class ChoiceReader {
  readonly #tools: ReadonlySet<string>
  #state: 'text' | 'thinking' | 'object' | 'arguments' = 'text'
  #beginning: string
  /** Not read yet: it may become a mark or a call. */
  #rest = ''
  /** Whether a mark has announced calls, or the answer can be nothing else. */
  #announced: boolean
  /** The mark and what followed it; the answer's text if no call follows. */
  #held = ''
  #content = ''
  /** The begin of a list before an object that may be a call. */
  #before = ''
  #calls = 0
  readonly #maxCalls: number
  #end = new ObjectEnd()
  #scanned = 0

  /**
   * @param beginning start of the answer, already in the prompt
   * @param thinking whether the prompt ends with `<think>`
   * @param parallel whether there may be several calls; only the first counts else
   */
  constructor({ tools, forced }: ToolUse, beginning: string, thinking: boolean, parallel = true) {
    this.#maxCalls = parallel ? MAX_CALLS : 1
    this.#tools = new Set(tools.map((tool) => tool.function.name))
    this.#announced = forced
    this.#beginning = beginning
    if (thinking) this.#state = 'thinking'
  }

  /** Whether a tool was called. */
  get called(): boolean {
    return this.#calls > 0
  }

  push(piece: string): ChatDelta[] {
    const text = this.#beginning + piece
    this.#beginning = ''
    if (this.#tools.size === 0) return text === '' ? [] : [{ content: text }]
    this.#rest += text
    const deltas: ChatDelta[] = []
    while (this.#step(deltas));
    this.#flush(deltas)
    return deltas
  }

  /** The last piece. A call that was cut off is never content. @param cut whether the answer was cut off */
  end(text: string, cut: boolean): ChatDelta[] {
    const deltas = this.push(text)
    const isCut = this.#state === 'object' ? cut || beginsCall(this.#rest) === true : cut
    if (this.called || this.#tools.size === 0 || (isCut && this.#state !== 'thinking')) return deltas
    this.#content = this.#held + this.#before + this.#rest
    this.#flush(deltas)
    return deltas
  }

  /** False: the next step needs more text. */
  #step(deltas: ChatDelta[]): boolean {
    switch (this.#state) {
      case 'text':
        return this.#readText()
      case 'thinking':
        return this.#readThought()
      case 'object':
        return this.#readObject(deltas)
      case 'arguments':
        return this.#readArguments(deltas)
    }
  }

  #readText(): boolean {
    const found = OPENING.exec(this.#rest)
    if (found === null) {
      this.#take(this.#rest.length - unfinished(this.#rest, [...MARKS, THINK]))
      return false
    }
    const [opening] = found
    this.#take(found.index)
    if (opening.endsWith('{')) {
      this.#before = opening.slice(0, -1)
      this.#rest = this.#rest.slice(this.#before.length)
      this.#begin('object')
      return true
    }
    if (opening === THINK) this.#state = 'thinking'
    else this.#announced = true
    this.#take(opening.length)
    return true
  }

  #readThought(): boolean {
    const at = this.#rest.indexOf(THOUGHT)
    if (at === -1) {
      this.#take(this.#rest.length - unfinished(this.#rest, [THOUGHT]))
      return false
    }
    this.#take(at + THOUGHT.length)
    this.#state = 'text'
    return true
  }

  #readObject(deltas: ChatDelta[]): boolean {
    const head = headOf(this.#rest)
    if (head !== undefined && this.#isCall(head.name)) {
      this.#call(deltas, head.name, '')
      this.#rest = this.#rest.slice(head.length)
      this.#begin('arguments')
      return true
    }
    if (!this.#announced && beginsCall(this.#rest) === false) return this.#isNoCall(1)
    const end = this.#end.find(this.#rest, this.#scanned)
    this.#scanned = this.#rest.length
    if (end === -1) return false
    const call = callOf(this.#rest.slice(0, end), !this.#announced)
    if (call === undefined || !this.#isCall(call.name)) return this.#isNoCall(end)
    this.#call(deltas, call.name, call.arguments)
    this.#rest = this.#rest.slice(end)
    this.#state = 'text'
    return true
  }

  /** So many characters of the object are text. */
  #isNoCall(length: number): true {
    this.#rest = this.#before + this.#rest
    this.#take(this.#before.length + length)
    this.#before = ''
    this.#state = 'text'
    return true
  }

  #readArguments(deltas: ChatDelta[]): boolean {
    const end = this.#end.find(this.#rest)
    const piece = end === -1 ? this.#rest : this.#rest.slice(0, end)
    this.#rest = this.#rest.slice(piece.length)
    if (piece !== '')
      deltas.push({ tool_calls: [{ index: this.#calls - 1, function: { arguments: piece } }] })
    if (end === -1) return false
    this.#state = 'text'
    return true
  }

  #begin(state: 'object' | 'arguments'): void {
    this.#state = state
    this.#end = new ObjectEnd()
    this.#scanned = 0
  }

  #isCall(name: string): boolean {
    return this.#calls < this.#maxCalls && (this.#announced || this.#tools.has(name))
  }

  #call(deltas: ChatDelta[], name: string, values: string): void {
    this.#flush(deltas)
    this.#before = ''
    const id = `call_${randomUUID().replaceAll('-', '')}`
    const call = {
      index: this.#calls++,
      id,
      type: 'function',
      function: { name, arguments: values },
    } as const
    deltas.push({ tool_calls: [call] })
  }

  /** Takes text that is no call from the rest. */
  #take(length: number): void {
    const text = this.#rest.slice(0, length)
    this.#rest = this.#rest.slice(length)
    if (this.called) return
    if (this.#announced) this.#held += text
    else this.#content += text
  }

  #flush(deltas: ChatDelta[]): void {
    if (this.#content !== '') deltas.push({ content: this.#content })
    this.#content = ''
  }
}

/** Length of the end of a text that may be the begin of a mark, or of a list of calls. */
function unfinished(text: string, marks: readonly string[]): number {
  const list = /\[\s*$/.exec(text)?.[0].length ?? 0
  const begun = marks.flatMap((mark) => {
    for (let length = Math.min(mark.length - 1, text.length); length > 0; length--)
      if (text.endsWith(mark.slice(0, length))) return [length]
    return []
  })
  return Math.max(list, ...begun, 0)
}
