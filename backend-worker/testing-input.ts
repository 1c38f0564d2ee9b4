import type { InputPart } from '../protocol/messages.ts'
import { exactJson } from '../common/exact-json.ts'

/** A value of a request: a string is sent as text, bytes as binary, anything else as JSON. */
export type TestInput =
  | string
  | number
  | bigint
  | boolean
  | null
  | Uint8Array
  | readonly TestInput[]
  | { readonly [key: string]: TestInput }

/** The part that a client would send for the value. */
export function toPart(name: string, value: TestInput): InputPart {
  if (value instanceof Uint8Array) return { name, data: value }
  if (typeof value === 'string') return { name, contentType: 'text/plain', data: Buffer.from(value) }
  return { name, contentType: 'application/json', data: Buffer.from(exactJson(value)) }
}
