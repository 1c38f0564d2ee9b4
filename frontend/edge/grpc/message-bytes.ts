import { gunzip, inflate } from 'node:zlib'
import { status as Status } from '@grpc/grpc-js'
import type { CallError } from './call-error.ts'
import { ANY_RATIO_BYTES, MAX_RATIO } from './limits.ts'

/** Compressed flag and length in front of each message (gRPC over HTTP2, Length-Prefixed-Message). */
export const PREFIX_BYTES = 5

/** Most requests: the chunk is one whole message that is not compressed. */
export function isPlainMessage(chunk: Buffer, maxSize: number): boolean {
  const size = chunk.length - PREFIX_BYTES
  return size >= 0 && chunk[0] === 0 && chunk.readUInt32BE(1) === size && size <= maxSize
}

const FIRST_BLOCK_BYTES = 4_096
const BLOCK_BYTES = 65_536

/**
 * The message that is under way, prefix included, copied into blocks of its own: so it takes the memory of
 * its bytes, whatever the pieces it comes in. It grows with what has come, never with what its prefix
 * promises.
 */
export class MessageBytes {
  readonly #maxSize: number
  readonly #prefix = Buffer.allocUnsafeSlow(PREFIX_BYTES)
  #blocks: Buffer[] = []
  /** Bytes that have come, prefix included. */
  #length = 0
  /** Bytes of the last block that are used. */
  #filled = 0
  #size = 0
  #allocated = 0

  /** `maxSize`: largest message in bytes, without its prefix. */
  constructor(maxSize: number) {
    this.#maxSize = maxSize
  }

  /** Whether any byte of it has come. */
  get begun(): boolean {
    return this.#length > 0
  }

  get whole(): boolean {
    return this.#length >= PREFIX_BYTES && this.#length === this.#size + PREFIX_BYTES
  }

  get compressed(): boolean {
    return this.#prefix[0] === 1
  }

  get tooLarge(): boolean {
    return this.#size > this.#maxSize
  }

  /** What its prefix says, in bytes; 0 before the prefix is there. */
  get size(): number {
    return this.#size
  }

  /** Bytes of memory that it takes. */
  get allocated(): number {
    return this.#allocated
  }

  /** Takes what belongs to it of a chunk from `at` on: at most a block; where the rest begins. */
  add(chunk: Buffer, at: number): number {
    if (this.#length < PREFIX_BYTES) return this.#addPrefix(chunk, at)
    const last = this.#blocks[this.#blocks.length - 1]!
    const block = this.#filled === last.length ? this.#grow() : last
    const took = chunk.copy(block, this.#filled, at)
    this.#filled += took
    this.#length += took
    return at + took
  }

  /** Its bytes; the next message may begin. */
  release(): readonly Buffer[] {
    const blocks = this.#blocks
    this.#blocks = []
    this.#length = this.#filled = this.#size = this.#allocated = 0
    return blocks
  }

  #addPrefix(chunk: Buffer, at: number): number {
    const took = chunk.copy(this.#prefix, this.#length, at)
    this.#length += took
    if (this.#length < PREFIX_BYTES) return at + took
    this.#size = this.#prefix.readUInt32BE(1)
    if (!this.tooLarge) {
      const first = this.#allocate(Math.min(this.#size + PREFIX_BYTES, FIRST_BLOCK_BYTES))
      this.#filled = this.#prefix.copy(first)
    }
    return at + took
  }

  #grow(): Buffer {
    this.#filled = 0
    return this.#allocate(Math.min(this.#size + PREFIX_BYTES - this.#length, BLOCK_BYTES))
  }

  #allocate(bytes: number): Buffer {
    const block = Buffer.allocUnsafeSlow(bytes)
    this.#blocks.push(block)
    this.#allocated += bytes
    return block
  }
}

/** Messages that are decompressed at one time: each needs up to twice its size while it grows. */
const MAX_RUNNING = 2
const CHUNK_BYTES = 65_536

type Done = (error: CallError | undefined, message: Buffer) => void

interface Task {
  readonly decode: typeof gunzip | typeof inflate
  readonly data: Buffer
  readonly done: Done
}

const NO_BYTES = Buffer.alloc(0)
/** The encodings that grpc-js knows. */
const DECODERS: ReadonlyMap<string, typeof gunzip | typeof inflate> = new Map([
  ['gzip', gunzip],
  ['deflate', inflate],
])

/** Decompresses the messages of a listener in Node's thread pool, a few at a time. */
export class Decompressor {
  readonly #maxBytes: number
  readonly #waiting = new Set<Task>()
  #running = 0

  /** `maxBytes`: largest message. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  knows(encoding: unknown): encoding is string {
    return typeof encoding === 'string' && DECODERS.has(encoding)
  }

  /**
   * Fails with RESOURCE_EXHAUSTED and INTERNAL, as grpc-js does. Returns what takes it out of the line again;
   * false: it has begun.
   */
  decompress(encoding: string, data: Buffer, done: Done): () => boolean {
    const task = { decode: DECODERS.get(encoding)!, data, done }
    this.#waiting.add(task)
    this.#next()
    return () => this.#waiting.delete(task)
  }

  #next(): void {
    if (this.#running >= MAX_RUNNING) return
    const [task] = this.#waiting
    if (task === undefined) return
    this.#waiting.delete(task)
    this.#running++
    const { decode, data, done } = task
    const byRatio = Math.max(data.byteLength * MAX_RATIO, ANY_RATIO_BYTES)
    const maxOutputLength = Math.min(this.#maxBytes, byRatio)
    decode(data, { maxOutputLength, chunkSize: CHUNK_BYTES }, (error, message) => {
      this.#running--
      if (error === null) done(undefined, message)
      else done(this.#refusal(error, maxOutputLength), NO_BYTES)
      this.#next()
    })
  }

  #refusal({ code }: NodeJS.ErrnoException, limit: number): CallError {
    if (code !== 'ERR_BUFFER_TOO_LARGE') {
      return { code: Status.INTERNAL, details: 'Failed to decompress message' }
    }
    const why = limit < this.#maxBytes ? `, more than ${MAX_RATIO} times its own` : ''
    return {
      code: Status.RESOURCE_EXHAUSTED,
      details: `Received message that decompresses to a size larger than ${limit}${why}`,
    }
  }
}
