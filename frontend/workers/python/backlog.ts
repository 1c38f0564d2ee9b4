import { itemCost } from '../../../protocol/credit-stream.ts'
import type { ResponseMessage } from '../../../protocol/messages.ts'

/** Small items are kept together: an object for each would cost more than the item. */
const BLOCK_BYTES = 32 * 1024

/** Items one after the other. */
interface Block {
  readonly bytes: Buffer
  /** Where each item ends. */
  readonly ends: number[]
  /** The number of items that were taken. */
  taken: number
}

/** Who gets what was kept. */
export interface BacklogReader {
  /** The bytes from..to of `chunk` are the item. */
  item(chunk: Buffer, from: number, to: number): void
  message(message: ResponseMessage): void
}

/**
 * Responses of one request that its client has no room for, in order. It takes hardly more memory than `cost`
 * says.
 */
export class Backlog {
  #entries: (Block | ResponseMessage)[] = []
  #cost = 0
  /** The last block, while items may be added. */
  #open: Block | undefined

  /** Of all that it keeps, in bytes, as `itemCost` counts. */
  get cost(): number {
    return this.#cost
  }

  /** Copies an item. */
  addItem(chunk: Buffer, from: number, to: number): void {
    const size = to - from
    const end = this.#open?.ends.at(-1) ?? 0
    const fits = this.#open !== undefined && end + size <= this.#open.bytes.byteLength
    const block = fits ? this.#open! : this.#newBlock(size)
    const at = fits ? end : 0
    chunk.copy(block.bytes, at, from, to)
    block.ends.push(at + size)
    this.#cost += itemCost(size)
  }

  /** Its body must be a copy. */
  addMessage(message: ResponseMessage): void {
    this.#entries.push(message)
    this.#open = undefined
    this.#cost += itemCost(message.body.byteLength)
  }

  /** Gives the oldest response away. To be called only if there is one. */
  take(reader: BacklogReader): void {
    const entry = this.#entries[0]!
    // Readers may keep views of a block. While they read an older one, items still share the last one.
    if (entry === this.#open) this.#open = undefined
    if (!('ends' in entry)) {
      this.#drop(itemCost(entry.body.byteLength), true)
      reader.message(entry)
      return
    }
    const { bytes, ends, taken } = entry
    const from = taken === 0 ? 0 : ends[taken - 1]!
    const to = ends[taken]!
    entry.taken += 1
    this.#drop(itemCost(to - from), entry.taken === ends.length)
    reader.item(bytes, from, to)
  }

  clear(): void {
    this.#entries = []
    this.#cost = 0
    this.#open = undefined
  }

  #newBlock(size: number): Block {
    const bytes = Buffer.allocUnsafeSlow(Math.max(BLOCK_BYTES, size))
    const block = (this.#open = { bytes, ends: [], taken: 0 })
    this.#entries.push(block)
    return block
  }

  #drop(cost: number, isWhole: boolean): void {
    this.#cost -= cost
    if (isWhole) this.#entries.shift()
  }
}
