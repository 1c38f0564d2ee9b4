import { createServer } from 'node:net'
import { eachFrame, HEAD_BYTES, KIND, writeHead } from './link.ts'
import { ITEM_BYTES, ITEMS, STREAM_ITEMS } from './workload.ts'

/**
 * The worker of the ceilings: echoes, or sends ITEMS items. Answers all requests of one chunk in one write.
 */

const ITEM_FRAME = HEAD_BYTES + ITEM_BYTES
const stream = Buffer.alloc(ITEMS * ITEM_FRAME + HEAD_BYTES)
for (const [i, item] of STREAM_ITEMS.entries()) stream.write(item, i * ITEM_FRAME + HEAD_BYTES, 'latin1')

/** The frames of a whole stream; streams differ only in the request's number. */
function streamFrames(id: number): Buffer {
  const frames = Buffer.from(stream)
  for (let i = 0; i < ITEMS; i++) writeHead(frames, i * ITEM_FRAME, id, KIND.item, ITEM_BYTES)
  writeHead(frames, ITEMS * ITEM_FRAME, id, KIND.last, 0)
  return frames
}

function echoFrame(id: number, body: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(HEAD_BYTES + body.length)
  writeHead(frame, 0, id, KIND.last, body.length)
  frame.set(body, HEAD_BYTES)
  return frame
}

const server = createServer((socket) => {
  let rest: Buffer | undefined
  socket.on('data', (chunk: Buffer) => {
    const whole = rest === undefined ? chunk : Buffer.concat([rest, chunk])
    const out: Buffer[] = []
    rest = eachFrame(whole, (id, kind, from, to) => {
      out.push(kind === KIND.stream ? streamFrames(id) : echoFrame(id, whole.subarray(from, to)))
    })
    if (out.length > 0) socket.write(out.length === 1 ? out[0]! : Buffer.concat(out))
  })
  socket.on('close', () => process.exit(0))
})
server.listen(process.argv[2], () => {
  process.stdout.write('listening 0\n')
})
