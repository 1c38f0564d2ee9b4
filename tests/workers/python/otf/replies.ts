import type { OtfAnswer } from '../../../../frontend/workers/python/otf/reply-decoder.ts'

/** What TorchServe's worker says at once. */
export interface Reply {
  code: number
  message: string
  answers: (OtfAnswer & { body: Buffer })[]
}

export function int(value: number): Buffer {
  const buffer = Buffer.alloc(4)
  buffer.writeInt32BE(value)
  return buffer
}

/** With its length. */
export function bytes(value: Uint8Array): Buffer {
  return Buffer.concat([int(value.byteLength), value])
}

export function text(value: string): Buffer {
  return bytes(Buffer.from(value))
}

export function reply({ code, message, answers }: Reply): Buffer {
  return Buffer.concat([int(code), text(message), ...answers.map(answer), int(-1)])
}

function answer({
  requestId,
  contentType,
  status,
  reason,
  headers,
  streamNext,
  body,
}: Reply['answers'][0]): Buffer {
  const pairs = Object.entries(headers)
  if (streamNext !== undefined) pairs.push(['ts_stream_next', streamNext])
  return Buffer.concat([
    text(requestId),
    text(contentType),
    int(status),
    text(reason),
    int(pairs.length),
    ...pairs.flatMap(([name, value]) => [text(name), text(value)]),
    bytes(body),
  ])
}
