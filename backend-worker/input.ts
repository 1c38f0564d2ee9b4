import { isUtf8 } from 'node:buffer'
import type { InputPart } from '../protocol/messages.ts'
import { exactJson } from '../common/exact-json.ts'
import { isObject, setOwn } from '../common/json.ts'
import { parseClientJson } from './bounded-json.ts'
import type { HandlerRequest } from './handler.ts'

/**
 * The parts of a request as the handler gets them: part name -> value. JSON is parsed and text becomes a
 * string. A part that cannot be decoded stays a Buffer, and `warn` gets the reason. The last part of a
 * repeated name wins.
 */
export function decodeRequest(
  parts: InputPart[],
  decode: boolean,
  warn: (message: string) => void,
): HandlerRequest {
  const request: HandlerRequest = {}
  for (const part of parts) {
    setOwn<unknown>(request, part.name, decode ? decodePart(part, warn) : asBuffer(part.data))
  }
  return request
}

function decodePart(part: InputPart, warn: (message: string) => void): unknown {
  const data = asBuffer(part.data)
  const contentType = part.contentType?.toLowerCase()
  if (contentType === 'application/json') return parseJson(part.name, data, warn)
  if (contentType?.startsWith('text/') !== true) return data
  if (isUtf8(data)) return data.toString()
  warn(`Part "${part.name}" is not valid UTF-8; the handler gets its bytes`)
  return data
}

function parseJson(name: string, data: Buffer, warn: (message: string) => void): unknown {
  try {
    return legible(parseClientJson(data))
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message.slice(0, 200) : ''
    warn(`Part "${name}" cannot be read as JSON; the handler gets its bytes: ${why}`)
    return data
  }
}

/** `String(body)` of a JSON object is its JSON: a handler of texts must not answer with `[object Object]`. */
function legible(value: unknown): unknown {
  if (!isObject(value) || Object.hasOwn(value, 'toString')) return value
  const toString = (): string => exactJson(value)
  return Object.defineProperty(value, 'toString', { value: toString, configurable: true, writable: true })
}

function asBuffer(data: Uint8Array): Buffer {
  return Buffer.isBuffer(data) ? data : Buffer.from(data.buffer, data.byteOffset, data.byteLength)
}
