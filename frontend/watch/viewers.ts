import { ServeError } from '../../common/errors.ts'
import type { EventTopic } from '../../common/server-events.ts'
import { identityOf, type Principal } from '../auth/principal.ts'
import { Moment, type WatchedServer } from './moment.ts'

/** Why there is no place: all are taken, or one key has its half. */
export type Refusal = 'all' | 'key'

/** What only some can do at once. One key has at most half of the places, so it keeps out no other. */
export class Places {
  readonly max: number
  readonly #taken = new Set<{ readonly key: string | undefined }>()

  constructor(max: number) {
    this.max = max
  }

  /** Places of one key. */
  get maxOfKey(): number {
    return this.max >> 1
  }

  /**
   * Takes a place. @returns what gives it back
   * @param key tells who takes it from others; undefined: many share it, or nobody knows who it is
   * @throws what `refused` makes of the reason when there is none
   */
  take(key: string | undefined, refused: (why: Refusal) => Error): () => void {
    const ofKey = key === undefined ? 0 : [...this.#taken].filter((each) => each.key === key).length
    if (this.#taken.size >= this.max) throw refused('all')
    if (ofKey >= this.maxOfKey) throw refused('key')
    const place = { key }
    this.#taken.add(place)
    return () => void this.#taken.delete(place)
  }
}

/** What one viewer wants to see. */
export interface EventQuery {
  readonly topics: ReadonlySet<EventTopic>
  /** Maximum number of requests in one event. */
  readonly requests: number
}

/** Where the events of one viewer go. */
export interface EventOutlet {
  /** Whether bytes wait for the viewer's connection. */
  readonly isFull: boolean
  /** Sends whole events, or a comment. */
  send(bytes: Buffer): void
  /** Ends the stream. */
  end(): void
  /** Closes the connection. */
  cut(why: ServeError): void
}

/** Streams of events about the server. */
export interface EventOperations {
  /**
   * Sends events until the viewer leaves, its key ends, or the server stops.
   * @returns what to call when the viewer has left
   * @throws ServeError RATE_LIMITED when too many watch, SHUTTING_DOWN
   */
  watch(principal: Principal, query: EventQuery, outlet: EventOutlet): () => void
}

export const MAX_VIEWERS = 32
/** Lines of the log that a viewer gets at first. */
const FIRST_LINES = 200
const TICK_MS = 250
/** Overview and requests come with every so many ticks. */
const WHOLE_TICKS = 4
/**
 * New viewers within the time of a tick that are shown everything at once. The others wait for the tick,
 * which makes it once for all of them: with thousands of open requests, who connects again and again would
 * take the server's thread.
 */
const SHOWN_AT_ONCE = 2
/** Milliseconds of silence before a comment is sent, so that proxies do not close the stream. */
const SILENCE_MS = 15_000
/** Milliseconds that a viewer may read nothing. */
const UNREAD_MS = 60_000
const UNREAD = new ServeError('CANCELLED', 'The viewer does not read')
const KEEP_ALIVE = Buffer.from(': keep-alive\n\n')

interface Viewer {
  readonly principal: Principal
  readonly query: EventQuery
  readonly outlet: EventOutlet
  /** Lines of the log that it has got, or that were dropped. */
  lines: number
  /** performance.now() of the last event. */
  sentAt: number
  /** Whether it has been shown nothing yet. */
  isNew: boolean
  /** Gives back its place. */
  readonly giveBack: () => void
}

/** All who watch the server. There is one timer for all of them, and none while there are none. */
export class Viewers implements EventOperations {
  readonly #watched: WatchedServer
  readonly #viewers = new Set<Viewer>()
  readonly #places = new Places(MAX_VIEWERS)
  #timer: NodeJS.Timeout | undefined
  #ticks = 0
  /** New viewers since then; a performance.now(). */
  #newcomers = { since: -Infinity, count: 0 }
  #closed = false

  constructor(watched: WatchedServer) {
    this.#watched = watched
  }

  /** Whether anything runs. */
  get isActive(): boolean {
    return this.#timer !== undefined
  }

  watch(principal: Principal, query: EventQuery, outlet: EventOutlet): () => void {
    if (this.#closed) throw new ServeError('SHUTTING_DOWN', 'The server is shutting down')
    const giveBack = this.#places.take(identityOf(principal), (why) => this.#noPlace(why))
    const written = this.#watched.logTail?.written ?? 0
    const lines = Math.max(0, written - FIRST_LINES)
    const viewer = { principal, query, outlet, lines, sentAt: 0, isNew: true, giveBack }
    this.#viewers.add(viewer)
    this.#timer ??= setInterval(this.#tick, TICK_MS).unref()
    if (this.#mayShowAtOnce())
      this.#guarded(viewer, () => this.#show(viewer, new Moment(this.#watched), true))
    return () => this.#leave(viewer)
  }

  #noPlace(why: Refusal): ServeError {
    const { max, maxOfKey } = this.#places
    const who = {
      all: `This server has ${max} viewers`,
      key: `This key has ${maxOfKey} viewers`,
    }
    return new ServeError(
      'RATE_LIMITED',
      `${who[why]}, and more are not supported. Close one of them, then try again.`,
    )
  }

  #mayShowAtOnce(): boolean {
    const now = performance.now()
    if (now - this.#newcomers.since >= TICK_MS) this.#newcomers = { since: now, count: 0 }
    return ++this.#newcomers.count <= SHOWN_AT_ONCE
  }

  /** Shows everybody that the server stops, then ends all streams. */
  close(): void {
    this.#closed = true
    const moment = new Moment(this.#watched)
    for (const viewer of this.#viewers) {
      this.#leave(viewer)
      this.#guarded(viewer, () => viewer.outlet.isFull || this.#show(viewer, moment, true))
      viewer.outlet.end()
    }
  }

  readonly #tick = (): void => {
    const moment = new Moment(this.#watched)
    const isWhole = ++this.#ticks % WHOLE_TICKS === 0
    for (const viewer of this.#viewers)
      this.#guarded(viewer, () => this.#serve(viewer, moment, isWhole || viewer.isNew))
  }

  #serve(viewer: Viewer, moment: Moment, isWhole: boolean): void {
    const { outlet, sentAt, principal } = viewer
    if (!principal.allows('management')) {
      this.#leave(viewer)
      outlet.end()
    } else if (!outlet.isFull) this.#show(viewer, moment, isWhole)
    else if (performance.now() - sentAt >= UNREAD_MS) throw UNREAD
  }

  /** What is thrown in a timer would end the process: it ends this viewer alone. */
  #guarded(viewer: Viewer, work: () => void): void {
    try {
      work()
    } catch (thrown) {
      this.#leave(viewer)
      viewer.outlet.cut(ServeError.from(thrown))
    }
  }

  #show(viewer: Viewer, moment: Moment, isWhole: boolean): void {
    const { query, outlet } = viewer
    const { topics, requests } = query
    const events: (Buffer | undefined)[] = [
      isWhole && topics.has('overview') ? moment.overview() : undefined,
      isWhole && topics.has('requests') ? moment.requests(requests) : undefined,
      topics.has('log') ? moment.log(viewer.lines) : undefined,
    ]
    const now = performance.now()
    viewer.isNew = false
    viewer.lines = this.#watched.logTail?.written ?? 0
    const isSilent = events.every((event) => event === undefined)
    if (isSilent && now - viewer.sentAt < SILENCE_MS) return
    viewer.sentAt = now
    for (const event of isSilent ? [KEEP_ALIVE] : events) if (event !== undefined) outlet.send(event)
  }

  #leave(viewer: Viewer): void {
    if (!this.#viewers.delete(viewer)) return
    viewer.giveBack()
    if (this.#viewers.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
