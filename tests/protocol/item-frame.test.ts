import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { decodeFromWorker, encode } from '../../protocol/codec.ts'
import { LENGTH_BYTES } from '../../protocol/frame.ts'
import {
  isItemFrame,
  ITEM_BODY_AT,
  ITEM_FRAME_BYTES,
  itemId,
  writeItemFrame,
} from '../../protocol/item-frame.ts'
import { anyFromWorker } from './messages.ts'

const id = fc.nat(0xffffffff)
const body = fc.uint8Array({ maxLength: 300 })

function itemFrame(id: number, body: Uint8Array): Buffer {
  const frame = Buffer.alloc(ITEM_FRAME_BYTES + body.byteLength)
  expect(writeItemFrame(frame, 0, id, body)).toBe(frame.byteLength)
  return frame
}

test('an item is told by its place: id and body come back', () => {
  fc.assert(
    fc.property(id, body, (id, body) => {
      const frame = itemFrame(id, body)
      expect(isItemFrame(frame, LENGTH_BYTES, frame.byteLength)).toBe(true)
      expect(itemId(frame, LENGTH_BYTES)).toBe(id)
      expect(frame.subarray(LENGTH_BYTES + ITEM_BODY_AT)).toEqual(Buffer.from(body))
    }),
  )
})

test('an item frame is the message that any codec reads', () => {
  fc.assert(
    fc.property(id, body, (id, body) => {
      const message = decodeFromWorker(itemFrame(id, body).subarray(LENGTH_BYTES))
      expect(message).toEqual({ type: 'response', id, ts_stream_next: 'true', body: Buffer.from(body) })
    }),
  )
})

test('other messages are no items', () => {
  fc.assert(
    fc.property(anyFromWorker, (message) => {
      const frame = encode(message)
      expect(isItemFrame(frame, LENGTH_BYTES, frame.byteLength)).toBe(false)
    }),
  )
})

test('a byte that differs, or is missing or too many, makes it no item, unless it is of the id or the body', () => {
  fc.assert(
    fc.property(id, body, fc.nat(), fc.integer({ min: 1, max: 255 }), (id, body, place, change) => {
      const frame = itemFrame(id, body)
      const at = LENGTH_BYTES + (place % ITEM_BODY_AT)
      frame[at]! ^= change
      const isId = at >= LENGTH_BYTES + 19 && at < LENGTH_BYTES + 23
      expect(isItemFrame(frame, LENGTH_BYTES, frame.byteLength)).toBe(isId)
      frame[at]! ^= change
      expect(isItemFrame(frame, LENGTH_BYTES, frame.byteLength - 1)).toBe(false)
      expect(isItemFrame(Buffer.concat([frame, Buffer.alloc(1)]), LENGTH_BYTES, frame.byteLength + 1)).toBe(
        false,
      )
    }),
  )
})
