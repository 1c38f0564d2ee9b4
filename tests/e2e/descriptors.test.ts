import { readdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { expect, test } from '@jest/globals'
import { COUNT, countBody } from '../support/count.ts'
import { RawRequest, rawRequest } from '../support/raw-http.ts'
import { startServer } from '../support/server.ts'
import { spawnSync } from '../support/tools.ts'

const hasPrlimit = process.platform === 'linux' && spawnSync('prlimit', ['--version']).status === 0
const needsPrlimit = hasPrlimit ? test : test.skip
/** Descriptors that are left, and clients that want one. */
const SPARE = 20
const CLIENTS = 200

needsPrlimit(
  `descriptors used up: a stream goes on, and the server serves again when there are some${hasPrlimit ? '' : ' (left out: no prlimit)'}`,
  async () => {
    const server = await startServer({ models: [COUNT] })
    await server.ready('count')
    const run = (id: string, n: number): RawRequest =>
      new RawRequest(server.ports.inference, '/predictions/count', countBody({ id, n, delay: 10 }))
    const stream = run('through', 300)
    await stream.gotChunks(3)
    const limit = readdirSync(`/proc/${server.pid}/fd`).length + SPARE
    expect(spawnSync('prlimit', ['--pid', String(server.pid), `--nofile=${limit}:${limit}`]).status).toBe(0)

    const ports = [server.ports.inference, server.ports.management, server.ports.grpcInference]
    const clients = Array.from({ length: CLIENTS }, (_, k): Socket =>
      connect(ports[k % ports.length]!, '127.0.0.1').on('error', () => undefined),
    )
    await server.until(
      async () => readdirSync(`/proc/${server.pid}/fd`).length,
      (open) => open >= limit - 5,
    )
    const { chunks, complete } = await stream.done
    expect([chunks.length, complete]).toEqual([300, true])

    for (const client of clients) client.destroy()
    await server.until(
      async () => readdirSync(`/proc/${server.pid}/fd`).length,
      (open) => open <= limit - SPARE,
    )
    expect((await run('after', 5).done).complete).toBe(true)
    expect((await rawRequest(server.ports.management, '/models', { method: 'GET' })).status).toBe(200)
    expect((await rawRequest(server.ports.metrics, '/metrics', { method: 'GET' })).status).toBe(200)
    expect((await server.worker('count')).restarts).toBe(0)
    expect(await server.stop()).toBe(0)
  },
)
