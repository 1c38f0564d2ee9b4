import { reasonOf } from './api.ts'
import { eventData } from './server-state.ts'

/** Pieces, characters of a piece and of the answer, and gaps that a run keeps. */
const MAX_PIECES = 2_000
const MAX_PIECE = 2_000
const MAX_ANSWER = 1_000_000
const MAX_GAPS = 100_000
const REDIRECTED = 'The model answers with a redirect, which the playground does not follow.'

/** One piece of an answer: an event of an event stream, else what arrived at once. Times in milliseconds. */
export interface Piece {
  readonly number: number
  /** Since the request was sent. */
  readonly at: number
  /** Since the piece before; undefined: it is the first. */
  readonly gap: number | undefined
  readonly text: string
}

type RunState = 'waiting' | 'streaming' | 'ended' | 'stopped' | 'failed'

/**
 * What a run measures: first, gaps and rate of the pieces that add to the answer. Times in milliseconds;
 * undefined: not known yet.
 */
export interface Figures {
  readonly first: number | undefined
  readonly p50: number | undefined
  readonly p99: number | undefined
  /** Pieces per second, from the first to the last one. */
  readonly rate: number | undefined
  readonly pieces: number
  readonly bytes: number
  readonly total: number
}

/** One request of the playground and its answer, piece by piece. */
export class PlayRun {
  readonly title: string
  /** The last ones. */
  readonly pieces: Piece[] = []
  state: RunState = 'waiting'
  status: number | undefined
  /** Its id, which the server's log has, too. */
  requestId: string | undefined
  /** Why it failed. */
  reason = ''
  answer = ''
  #count = 0
  #bytes = 0
  #before = 0
  /** Pieces that add to the answer: the figures are about them. Events of roles and usage say nothing. */
  #texts = 0
  #first: number | undefined
  #last = 0
  #end: number | undefined
  readonly #gaps: number[] = []
  readonly #begin = performance.now()
  readonly #stop = new AbortController()
  readonly #textOf: (piece: string) => string
  readonly #changed: () => void

  /** @param textOf what a piece adds to the answer */
  constructor(title: string, textOf: (piece: string) => string, changed: () => void) {
    this.title = title
    this.#textOf = textOf
    this.#changed = changed
  }

  /** Sends the request, and reads its answer to the end. */
  async run(send: (signal: AbortSignal) => Promise<Response>): Promise<void> {
    try {
      const response = await send(this.#stop.signal)
      if (response.type === 'opaqueredirect') throw new Error(REDIRECTED)
      this.status = response.status
      this.requestId = response.headers.get('x-request-id') ?? undefined
      this.state = 'streaming'
      this.#changed()
      await this.#read(response)
      this.state = response.ok ? 'ended' : 'failed'
    } catch (thrown) {
      this.state = this.#stop.signal.aborted ? 'stopped' : 'failed'
      const reason = reasonOf(thrown)
      if (this.state === 'failed')
        this.reason = reason === REDIRECTED ? reason : `The connection broke: ${reason}`
    }
    this.#end = this.#now()
    this.#changed()
  }

  stop(): void {
    this.#stop.abort()
  }

  get isOpen(): boolean {
    return this.state === 'waiting' || this.state === 'streaming'
  }

  get isUnauthorized(): boolean {
    return isUnauthorized(this.status, this.answer)
  }

  /** Whether the answer is an error, and not a part of an answer. */
  get isRefused(): boolean {
    return this.state === 'failed' && (this.status ?? 500) >= 400
  }

  /** What a failed answer says, with its code, such as `HANDLER_FAILED: no such word`. */
  get error(): string {
    if (this.state !== 'failed') return ''
    if (this.reason !== '') return this.reason
    const places = [['error', 'message'], ['error'], ['message']]
    const message = places.map((path) => textAt(this.answer, path)).find((text) => text !== '')
    const code = textAt(this.answer, ['error', 'code']) || textAt(this.answer, ['type'])
    return [code, message ?? this.answer.slice(0, MAX_PIECE)].filter((text) => text !== '').join(': ')
  }

  /** Pieces that are no longer in `pieces`. */
  get leftOut(): number {
    return this.#count - this.pieces.length
  }

  get figures(): Figures {
    const gaps = this.#gaps.toSorted((one, other) => one - other)
    const span = this.#last - (this.#first ?? 0)
    return {
      first: this.#first,
      p50: quantile(gaps, 0.5),
      p99: quantile(gaps, 0.99),
      rate: this.#texts > 1 && span > 0 ? ((this.#texts - 1) / span) * 1000 : undefined,
      pieces: this.#count,
      bytes: this.#bytes,
      total: this.#end ?? this.#now(),
    }
  }

  async #read(response: Response): Promise<void> {
    const isEvents = /^text\/event-stream\b/.test(response.headers.get('content-type') ?? '')
    const reader = response.body!.getReader()
    const decoder = new TextDecoder()
    let rest = ''
    let whole = ''
    for (;;) {
      const { done, value } = await reader.read()
      this.#bytes += value?.length ?? 0
      const text = decoder.decode(value, { stream: !done })
      if (isEvents) {
        const blocks = (rest + text).split('\n\n')
        rest = done ? '' : blocks.pop()!.slice(-MAX_ANSWER)
        for (const data of blocks.map(eventData)) if (data !== undefined) this.#piece(data)
      } else if (text !== '') {
        this.#piece(text)
        whole = (whole + text).slice(0, MAX_ANSWER)
      }
      if (done) break
      this.#changed()
    }
    // A JSON answer in several reads, or an error.
    if (this.answer === '') this.answer = this.#textOf(whole) || whole
  }

  #piece(text: string): void {
    const at = this.#now()
    const gap = this.#count === 0 ? undefined : at - this.#before
    this.#before = at
    this.#count += 1
    this.pieces.push({ number: this.#count, at, gap, text: text.slice(0, MAX_PIECE) })
    if (this.pieces.length > MAX_PIECES) this.pieces.shift()
    const added = this.#textOf(text)
    if (added === '') return
    if (this.#first !== undefined && this.#gaps.length < MAX_GAPS) this.#gaps.push(at - this.#last)
    this.#first ??= at
    this.#last = at
    this.#texts += 1
    if (this.answer.length < MAX_ANSWER) this.answer += added
  }

  #now(): number {
    return performance.now() - this.#begin
  }
}

/** Whether a key was refused, which TorchServe's API says with 400. */
export function isUnauthorized(status: number | undefined, answer: string): boolean {
  return status === 401 || (status === 400 && answer.includes('"InvalidKeyException"'))
}

/** Of sorted values; undefined: there are none. */
function quantile(sorted: readonly number[], share: number): number | undefined {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
}

/** The text at a place of a JSON text; empty: there is none. */
export function textAt(json: string, path: readonly (string | number)[]): string {
  try {
    let value: unknown = JSON.parse(json)
    for (const step of path) {
      if (typeof value !== 'object' || value === null) return ''
      value = Reflect.get(value, step)
    }
    return typeof value === 'string' ? value : ''
  } catch {
    return '' // `[DONE]`, or an error in plain text
  }
}
