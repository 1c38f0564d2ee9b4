import { EventEmitter, once } from 'node:events'
import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises'
import { LIMITS } from '../points.ts'

/** The defects that a server can have. */
export type Defect =
  | 'tells of failures only in the stream'
  | 'keeps all items until the end'
  | 'joins items'
  | 'ends a failure as if it were the end'
  | 'does not notice that a client leaves'
  | 'does not wait for a slow reader'
  | 'answers one request at a time'
  | 'has no time limits'
  | 'has one time limit for all'
  | 'compresses'
  | 'lets every rank send'

export interface Run {
  n: number
  delay?: number
  gated?: boolean
  size?: number
  fail?: number
  id?: string
  stream?: boolean
  query?: string
}

/** The client's side of a response. */
export interface Reply {
  refuse(status: 'not found' | 'failed'): void
  /** False: wait for `drain` of {@link Reply.drains}. */
  item(text: string): boolean
  fail(): void
  end(): void
  readonly drains: EventEmitter
  /** Aborts when the client disconnects. */
  readonly left: AbortSignal
}

/**
 * Bytes that a server without backpressure reads ahead: more than the suite allows, and little enough for a
 * test.
 */
const MAX_AHEAD = 400

/** A small model server that keeps the stream contract except for one defect. */
export class Runs {
  readonly #defect: Defect | undefined
  readonly #made = new Map<string, number>()
  /** Tells gated runs that their next item is requested. */
  readonly #wanted = new EventEmitter()
  #last: Promise<void> = Promise.resolve()

  constructor(defect?: Defect) {
    this.#defect = defect
  }

  async answer(model: string, run: Run, reply: Reply): Promise<void> {
    if (run.query !== undefined) {
      if (run.query === 'next') this.#wanted.emit(run.id!)
      reply.item(JSON.stringify({ items: this.#made.get(run.id!) ?? 0 }))
      reply.end()
    } else if (model === 'no-such-model') this.#refuse(reply, 'not found')
    else if (this.#has('answers one request at a time')) await this.#next(() => this.#run(model, run, reply))
    else await this.#run(model, run, reply)
  }

  #has(defect: Defect): boolean {
    return this.#defect === defect
  }

  #next(run: () => Promise<void>): Promise<void> {
    this.#last = this.#last.then(run)
    return this.#last
  }

  #refuse(reply: Reply, status: 'not found' | 'failed'): void {
    if (this.#has('tells of failures only in the stream')) {
      reply.item('what follows is no item')
      reply.fail()
    } else reply.refuse(status)
  }

  async #run(model: string, run: Run, reply: Reply): Promise<void> {
    const stop = this.#has('does not notice that a client leaves') ? new AbortController().signal : reply.left
    const began = performance.now()
    const kept: string[] = []
    for (let k = 1; k <= run.n; k += 1) {
      const first = k === 1 || run.stream === false
      const late = this.#tooLate(model, first, k === 1 ? 0 : (run.delay ?? 0), began)
      const pause = late ?? (k === 1 ? 0 : (run.delay ?? 0))
      if (k > 1 && run.gated) await once(this.#wanted, run.id!, { signal: stop }).catch(() => undefined)
      else if (pause > 0) await delay(pause, undefined, { signal: stop }).catch(() => undefined)
      else await turn()
      if (stop.aborted) return
      if (late !== undefined || run.fail === k - 1) {
        if (first) this.#refuse(reply, 'failed')
        else this.#fail(reply)
        return
      }
      if (run.id !== undefined) this.#made.set(run.id, k)
      if (run.stream !== false) await this.#send(model, `${k}`.padStart(run.size ?? 0), kept, reply)
    }
    for (const text of kept) reply.item(text)
    reply.end()
  }

  /** Milliseconds after which the next item is too late; undefined: never. */
  #tooLate(model: string, first: boolean, gap: number, began: number): number | undefined {
    if (model !== 'limited' || this.#has('has no time limits')) return undefined
    const limits = this.#has('has one time limit for all')
      ? { first: LIMITS.first, gap: LIMITS.first, total: LIMITS.first * 100 }
      : LIMITS
    const left = Math.min(
      began + limits.total - performance.now(),
      first ? began + limits.first - performance.now() : limits.gap,
    )
    return gap > left ? left : undefined
  }

  async #send(model: string, text: string, kept: string[], reply: Reply): Promise<void> {
    const hurries = this.#has('does not wait for a slow reader') && Number(text) < MAX_AHEAD
    if (this.#give(model, text, kept, reply) || hurries) return
    const { drains, left } = reply
    await once(drains, 'drain', { signal: left }).catch(() => undefined)
  }

  /** False: the connection is full. */
  #give(model: string, text: string, kept: string[], reply: Reply): boolean {
    if (this.#has('keeps all items until the end')) return kept.push(text) < MAX_AHEAD
    if (this.#has('joins items')) return kept.push(text) < 2 || reply.item(kept.splice(0).join(' '))
    if (model === 'ranked' && this.#has('lets every rank send')) reply.item(text)
    return reply.item(text)
  }

  #fail(reply: Reply): void {
    if (this.#has('ends a failure as if it were the end')) reply.end()
    else reply.fail()
  }
}
