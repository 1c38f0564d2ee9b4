import type { InputPart } from '../protocol/messages.ts'

/** A value of a request: a string arrives as text, bytes as a Buffer, anything else as JSON. */
export type TestInput =
  string | number | boolean | null | Uint8Array | readonly TestInput[] | { readonly [key: string]: TestInput }

/** The part that a client would send for it. */
export function toPart(name: string, value: TestInput): InputPart {
  if (value instanceof Uint8Array) return { name, data: value }
  if (typeof value === 'string') return { name, contentType: 'text/plain', data: Buffer.from(value) }
  return { name, contentType: 'application/json', data: Buffer.from(JSON.stringify(value)) }
}
