import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { TURN_BYTES, TURN_LINES } from '../../frontend/workers/read-lines.ts'
import { RankProcess } from '../../frontend/workers/rank-process.ts'
import { frameOf } from '../support/frames.ts'
import type { FromWorker, MetricMessage } from '../../protocol/messages.ts'
import { tempDir } from '../support/temp.ts'

/** A worker that says these messages to who connects, as fast as it is read, and ends. */
const WORKER = `
  const [file, path] = process.argv.slice(1)
  const server = require('net').createServer((socket) => {
    socket.end(require('fs').readFileSync(file))
    server.close()
    process.stdin.destroy()
  })
  server.listen(path, () => console.log('Torch worker started.'))
`

/** Returns what came, and how many messages came in each turn of the event loop. */
async function said(messages: readonly FromWorker[]): Promise<{ came: FromWorker[]; turns: number[] }> {
  const folder = tempDir()
  const file = join(folder, 'frames')
  const socketPath = join(folder, 'socket')
  writeFileSync(file, Buffer.concat(messages.map((message) => frameOf(message))))
  const args = ['-e', WORKER, file, socketPath]
  const came: FromWorker[] = []
  const rank = new RankProcess(
    {
      rank: 0,
      commandLine: { command: process.execPath, args, workerArgs: args, env: {}, cwd: folder },
      socketPath,
      maxFrameBytes: 2 ** 20,
    },
    {
      onMessage: (_rank, message) => came.push(message),
      itemsOf: () => () => undefined,
      onOutput: () => undefined,
      onExit: () => undefined,
    },
  )
  const turns: number[] = []
  for (let before = 0; came.length < messages.length; before = came.length) {
    await turn()
    if (came.length > before) turns.push(came.length - before)
  }
  await rank.exited
  return { came, turns }
}

test('a turn of the event loop takes so many log frames, and each in its order in the end', async () => {
  const messages = Array.from({ length: 5_000 }, (_, n): FromWorker => {
    return { type: 'log', level: 'info', message: String(n) }
  })
  const { came, turns } = await said(messages)
  expect(came).toEqual(messages)
  // A look may see the end of the turn before it, too.
  expect(Math.max(...turns)).toBeLessThanOrEqual(2 * TURN_LINES)
})

test('each value of a metric frame counts', async () => {
  const values = 64
  const message: MetricMessage = {
    type: 'metric',
    name: 'm',
    kind: 'histogram',
    unit: 'ms',
    dimensions: {},
    values: Array<number>(values).fill(1),
    requestIds: Array<string>(values).fill(''),
  }
  const { came, turns } = await said(Array<FromWorker>(200).fill(message))
  expect(came).toHaveLength(200)
  expect(Math.max(...turns)).toBeLessThanOrEqual((2 * TURN_LINES) / values)
})

test('long texts count by their bytes', async () => {
  const message: FromWorker = { type: 'log', level: 'info', message: 'x'.repeat(TURN_BYTES / 4) }
  const { came, turns } = await said(Array<FromWorker>(100).fill(message))
  expect(came).toHaveLength(100)
  expect(Math.max(...turns)).toBeLessThanOrEqual(8)
})
