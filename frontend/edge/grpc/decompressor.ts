import { gunzip, inflate } from 'node:zlib'
import { status as Status } from '@grpc/grpc-js'
import type { CallError } from './call-error.ts'
import { ANY_RATIO_BYTES, MAX_RATIO } from './limits.ts'

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
