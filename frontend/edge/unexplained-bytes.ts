import type { EventEmitter } from 'node:events'

/** Milliseconds between two looks at all connections. */
const LOOK_EVERY_MS = 50
/** What a connection may send at once beside its requests. */
const BURST_BYTES = 262_144
/** The same per second. */
const BYTES_PER_SECOND = 16_384

/** A connection: its socket, or its HTTP/2 session. */
export type Owner = EventEmitter & { readonly destroyed: boolean }

interface CountedSocket {
  readonly bytesRead: number
  readonly bytesWritten: number
}

/** Bytes that a connection may send because of its requests, since the last look. */
export class Explained {
  bytes = 0
}

class Watched {
  readonly cut: () => void
  readonly ended: (() => void) | undefined
  readonly #owner: Owner
  readonly #socket: CountedSocket
  readonly #explained: Explained
  #level = BURST_BYTES
  #read: number
  #written: number

  constructor(owner: Owner, socket: CountedSocket, cut: () => void, ended: (() => void) | undefined) {
    this.#owner = owner
    this.#socket = socket
    this.#explained = explainedOf(owner)
    this.cut = cut
    this.ended = ended
    this.#read = socket.bytesRead
    this.#written = socket.bytesWritten
  }

  /** A session that ends has no socket. */
  get isOver(): boolean {
    return this.#owner.destroyed
  }

  /** Whether it has sent no more than it may, `seconds` after the last look. */
  look(seconds: number): boolean {
    const { bytesRead, bytesWritten } = this.#socket
    // For what it is sent, a client of HTTP/2 sends WINDOW_UPDATE and PING, fewer bytes than it gets.
    const due = this.#explained.bytes + bytesWritten - this.#written
    this.#level += seconds * BYTES_PER_SECOND + due - (bytesRead - this.#read)
    this.#explained.bytes = 0
    this.#read = bytesRead
    this.#written = bytesWritten
    if (this.#level < 0) return false
    this.#level = Math.min(this.#level, BURST_BYTES)
    return true
  }
}

const watched = new Set<Watched>()
let timer: NodeJS.Timeout | undefined
let lookedAt = 0

const EXPLAINED = Symbol('explained')

/** What the requests of a connection add their bytes to. Each asks for it, and a `WeakMap` takes longer. */
export function explainedOf(owner: Owner & { [EXPLAINED]?: Explained }): Explained {
  return (owner[EXPLAINED] ??= new Explained())
}

/**
 * Calls `cut` when a connection sends bytes without end that belong to no request: over HTTP/2 WINDOW_UPDATE,
 * PRIORITY, padding, frames of unknown types or of streams that are over; over HTTP/1.1 empty lines before a
 * request, or spaces in its head. Node's parsers take these without telling anybody and no flow control
 * holds them back, so a turn of the event loop would take two megabytes of each connection. What remains of
 * the bytes of the socket without those of its requests is theirs.
 *
 * `ended` is called once, soon after the owner is destroyed, from when on nothing is counted. The socket of a
 * session may be open then, and an HTTP/2 session tells nothing before it closes.
 */
export function cutUnexplained(
  owner: Owner,
  socket: CountedSocket,
  cut: () => void,
  ended?: () => void,
): void {
  const entry = new Watched(owner, socket, cut, ended)
  watched.add(entry)
  owner.once('close', () => leave(entry))
  if (timer !== undefined) return
  lookedAt = performance.now()
  timer = setInterval(look, LOOK_EVERY_MS).unref()
}

function look(): void {
  const now = performance.now()
  const seconds = (now - lookedAt) / 1_000
  lookedAt = now
  for (const entry of watched) {
    if (entry.isOver) leave(entry)
    else if (!entry.look(seconds)) entry.cut()
  }
}

function leave(entry: Watched): void {
  if (!watched.delete(entry)) return
  entry.ended?.()
  if (watched.size > 0) return
  clearInterval(timer)
  timer = undefined
}
