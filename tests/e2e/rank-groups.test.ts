import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { RawRequest, rawRequest, type RawResponse } from '../support/raw-http.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const RANKS = [0, 1, 2, 3]
let server: Server
let logs: string

beforeAll(async () => {
  logs = tempDir()
  server = await startServer({
    models: [`ranks=${join(REPOSITORY, 'tests/support/handlers/ranks')}`],
    env: { RANK_LOG: logs },
  })
  await server.ready('ranks')
})

function predict(body: Record<string, unknown> = {}): Promise<RawResponse> {
  return rawRequest(server.ports.inference, '/predictions/ranks', {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

function seen(rank: number): string[] {
  const file = join(logs, `rank-${rank}.log`)
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
}

function pidOf(rank: number): number {
  return Number(/pid=(\d+)/.exec(seen(rank).at(-1) ?? '')?.[1])
}

describe('a group of four ranks', () => {
  test('every rank sees the request, one answer comes, and it is of rank 0', async () => {
    const response = await predict()
    expect(response.chunks.map(String)).toEqual(['from rank 0\n', 'end of rank 0 of 4, 0/4\n'])
    const id = response.headers['x-request-id']
    for (const rank of RANKS) {
      await server.until(
        () => Promise.resolve(seen(rank)),
        // "sent" is written after the call returned, on every rank; only the call of rank 0 sent something.
        (lines) =>
          lines.some((l) => l.startsWith(`request ${id}`)) && lines.some((l) => l.startsWith('sent')),
      )
    }
    expect(new Set(RANKS.map(pidOf)).size).toBe(4)
  })

  test('every rank hears a cancel', async () => {
    const request = new RawRequest(server.ports.inference, '/predictions/ranks', {
      headers: { 'content-type': 'application/json' },
      body: '{"wait":true}',
    })
    await request.gotChunks(1)
    request.destroy()
    for (const rank of RANKS) {
      await server.until(
        () => Promise.resolve(seen(rank)),
        (lines) => lines.some((l) => l.startsWith('aborted')),
      )
    }
    expect((await predict()).complete).toBe(true)
  })

  test('the death of rank 3 restarts the group', async () => {
    const before = RANKS.map(pidOf)
    process.kill(before[3]!, 'SIGKILL')
    const worker = await server.until(
      () => server.worker('ranks'),
      (w) => w.restarts > 0 && w.status === 'READY',
    )
    expect(worker.lastExit?.reason).toBe('Rank 3: The process was killed by SIGKILL')
    expect((await predict()).body).toContain('end of rank 0 of 4')
    await server.until(
      () => Promise.resolve(RANKS.map(pidOf)),
      (pids) => pids.every((pid, rank) => pid !== before[rank]),
    )
  })
})
