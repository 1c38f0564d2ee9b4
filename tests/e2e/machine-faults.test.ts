import { expect, test } from '@jest/globals'
import { COUNT, countBody } from '../support/count.ts'
import { type Fault, Faults } from '../support/faults.ts'
import { RawRequest } from '../support/raw-http.ts'
import { type Server, type ServerOptions, startServer } from '../support/server.ts'

/** A server whose system calls can fail. */
async function startWith(options: ServerOptions = {}): Promise<{ server: Server; faults: Faults }> {
  const faults = new Faults()
  const server = await startServer({ models: [COUNT], ...options, ...faults.options })
  await server.ready('count')
  return { server, faults }
}

const stream = (server: Server, id: string, n: number): RawRequest =>
  new RawRequest(server.ports.inference, '/predictions/count', countBody({ id, n, delay: 10 }))

const ON_THE_WAY_OUT: Fault[] = [
  { call: 'write', code: 'ENOSPC', text: '.model_server' },
  { call: 'rename', code: 'EROFS', text: '.model_server' },
  { call: 'open', code: 'EMFILE', text: '-shutdown.cfg' },
  { call: 'rename', code: 'ENOSPC', text: '-shutdown.cfg' },
  { call: 'unlink', code: 'EROFS', text: '/tmp/' },
]

test.each(ON_THE_WAY_OUT)('a stop drains although $call fails with $code for $text', async (fault) => {
  const { server, faults } = await startWith({ snapshots: true })
  const running = stream(server, 'drains', 100)
  await running.gotChunks(3)
  faults.make(fault)
  const stopped = server.stop()
  const { chunks, complete } = await running.done
  expect([chunks.length, complete, await stopped]).toEqual([100, true, 0])
  expect(faults.hits).toBeGreaterThan(0)
  const lines = server.output.filter((line) => line.includes(`${fault.code}: `))
  expect(lines).not.toEqual([])
  for (const line of lines) expect(line).toContain(fault.text)
})
