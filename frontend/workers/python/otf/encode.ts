import type { InputPart } from '../../../../common/handler-methods.ts'

/**
 * Encodes TorchServe's OTF protocol for its Python worker (ts/protocol/otf_message_handler.py): numbers are
 * signed 32-bit big-endian; a text is its length in bytes and UTF-8; a list ends with -1.
 */
const LOAD = 'L'.charCodeAt(0)
const PREDICT = 'I'.charCodeAt(0)
const END_OF_LIST = 0xffffffff
const LINE_FEED = '\n'
/** Sizes in bytes of a command and of a number. */
const BYTE = 1
const INT = 4

/** A write position in a buffer that has room for all that is written. */
class Writer {
  readonly buffer: Buffer
  at = 0

  constructor(size: number) {
    this.buffer = Buffer.allocUnsafe(size)
  }

  byte(value: number): void {
    this.buffer[this.at++] = value
  }

  uint32(value: number): void {
    this.at = this.buffer.writeUInt32BE(value, this.at)
  }

  text(text: string): void {
    const start = this.at + INT
    const size = this.buffer.write(text, start)
    this.uint32(size)
    this.at = start + size
  }

  bytes(bytes: Uint8Array): void {
    this.uint32(bytes.length)
    this.buffer.set(bytes, this.at)
    this.at += bytes.length
  }
}

/** What the worker needs to load its handler; it reads the rest from the model's folder. */
export interface OtfLoad {
  modelName: string
  /** Absolute path. */
  modelDir: string
  batchSize: number
  /** As in the manifest: `file[.py][:function]`, or the name of one of TorchServe's handlers. */
  handler: string
  /** GPU number; -1 on CPU. */
  gpuId: number
  /** Name of a request envelope; empty: none. */
  envelope: string
  limitMaxImagePixels: boolean
}

/** One request of a batch. */
export interface OtfRequest {
  requestId: string
  /** Names and values; see common/headers.ts. */
  headers: string
  /** Absent: the worker has the parts from an earlier step (continuous batching). */
  parts: readonly InputPart[]
}

export function encodeLoad(load: OtfLoad): Buffer {
  const texts = [load.modelName, load.modelDir, load.handler, load.envelope]
  const size = texts.reduce((sum, text) => sum + textSize(text), 2 * BYTE + 2 * INT)
  const writer = new Writer(size)
  writer.byte(LOAD)
  writer.text(load.modelName)
  writer.text(load.modelDir)
  writer.uint32(load.batchSize)
  writer.text(load.handler)
  writer.uint32(load.gpuId >>> 0)
  writer.text(load.envelope)
  writer.byte(load.limitMaxImagePixels ? 1 : 0)
  return writer.buffer
}

/** One call of the handler, for all these requests. */
export function encodePredict(requests: readonly OtfRequest[]): Buffer {
  let size = BYTE + INT
  for (const request of requests) size += requestSize(request)
  const writer = new Writer(size)
  writer.byte(PREDICT)
  for (const request of requests) writeRequest(writer, request)
  writer.uint32(END_OF_LIST)
  return writer.buffer
}

function requestSize({ requestId, headers, parts }: OtfRequest): number {
  let size = textSize(requestId) + headersSize(headers) + 2 * INT
  for (const { name, contentType = '', data } of parts) {
    size += textSize(name) + textSize(contentType) + INT + data.byteLength
  }
  return size
}

function writeRequest(writer: Writer, { requestId, headers, parts }: OtfRequest): void {
  writer.text(requestId)
  writeHeaders(writer, headers)
  writer.uint32(END_OF_LIST)
  for (const { name, contentType = '', data } of parts) {
    writer.text(name)
    writer.text(contentType)
    writer.bytes(data)
  }
  writer.uint32(END_OF_LIST)
}

/** Each line has its length in front instead of a line feed behind it. */
function headersSize(lines: string): number {
  let count = 0
  for (let end = lines.indexOf(LINE_FEED); end !== -1; end = lines.indexOf(LINE_FEED, end + 1)) count += 1
  return Buffer.byteLength(lines) + count * (INT - 1)
}

function writeHeaders(writer: Writer, lines: string): void {
  let start = 0
  for (let end = lines.indexOf(LINE_FEED); end !== -1; end = lines.indexOf(LINE_FEED, start)) {
    writer.text(lines.slice(start, end))
    start = end + 1
  }
}

function textSize(text: string): number {
  return INT + Buffer.byteLength(text)
}
