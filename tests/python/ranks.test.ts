import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { isRunning } from '../support/processes.ts'
import { allReady, predict, PYTHON_MS } from '../support/python/client.ts'
import { pythonFolder } from '../support/python/python-folder.ts'
import { describePython } from '../support/python/test-python.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

/** torchrun is a stand-in of the tests, unless PyTorch is the real one (npm run test:python). */
await describePython('Rank groups of Python workers', ({ python }) => {
  const logs: Record<string, string> = {}
  const servers: Record<string, Server> = {}

  /** A server of its own, so that each group has a log of its own. */
  async function start(
    type: string,
    env: Record<string, string> = {},
    config: Record<string, unknown> = {},
    name = type,
  ): Promise<Server> {
    logs[name] = tempDir()
    const level = type === 'custom' ? { parallelLevel: 2 } : { torchrun: { 'nproc-per-node': 2 } }
    const model = pythonFolder('ranks', 'ranks', { parallelType: type, ...level, ...config })
    return (servers[name] = await startServer({
      models: [model],
      config: { python },
      env: { RANK_LOG: logs[name], ...env },
    }))
  }

  beforeAll(async () => {
    await Promise.all(['tp', 'pp', 'pptp', 'custom'].map((type) => start(type)))
    await Promise.all(Object.values(servers).map((server) => allReady(server, ['ranks'])))
  }, PYTHON_MS)

  function seen(type: string, rank: number): string[] {
    const file = join(logs[type]!, `rank-${rank}.log`)
    return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
  }

  function pidOf(type: string, rank: number): number {
    return Number(/pid=(\d+)/.exec(seen(type, rank).findLast((line) => line.startsWith('loaded')) ?? '')?.[1])
  }

  test.each(['tp', 'pptp'])(
    '%s: every rank gets the request, and one answer comes, of rank 0',
    async (type) => {
      const response = await predict(servers[type]!, 'ranks', {})
      expect(response.chunks.map(String)).toEqual(['from rank 0\n', 'end of rank 0 of 2'])
      const wanted = `request ${response.headers['x-request-id']}`
      for (const rank of [0, 1]) {
        await servers[type]!.until(
          () => Promise.resolve(seen(type, rank)),
          (lines) => lines.includes(wanted),
        )
      }
    },
  )

  test('pp: rank 0 alone gets the request', async () => {
    const response = await predict(servers['pp']!, 'ranks', {})
    expect(response.chunks.map(String)).toEqual(['from rank 0\n', 'end of rank 0 of 2'])
    expect(seen('pp', 1)).toEqual([expect.stringMatching(/^loaded/)])
  })

  test('custom: one process, which looks after its ranks itself', async () => {
    const response = await predict(servers['custom']!, 'ranks', {})
    expect(response.chunks.map(String)).toEqual(['from rank 0\n', 'end of rank 0 of None'])
    expect(seen('custom', 1)).toEqual([])
  })

  test('describe shows the first rank, and the memory of all', async () => {
    const { pid, memoryUsage } = await servers['tp']!.worker('ranks')
    expect([pidOf('tp', 0), pidOf('tp', 1)]).toContain(pid)
    expect(memoryUsage).toBeGreaterThan(10_000_000)
  })

  describe('a rank that dies', () => {
    test(
      'ends the group, and a new one serves',
      async () => {
        const server = servers['tp']!
        const before = [pidOf('tp', 0), pidOf('tp', 1)]
        const { pid } = await server.worker('ranks')
        // Rank 0 may have answered before it hears of it.
        await predict(server, 'ranks', { die: 1 })
        await server.until(
          () => server.worker('ranks'),
          (worker) => worker.status === 'READY' && worker.pid !== pid,
          PYTHON_MS,
        )
        expect((await predict(server, 'ranks', {})).status).toBe(200)
        expect(before.filter(isRunning)).toEqual([])
      },
      PYTHON_MS,
    )
  })

  test(
    'a rank that cannot load fails the worker, though the other one can',
    async () => {
      const server = await start('tp', { FAIL_RANK: '1' }, { maxRetryTimeoutInSec: 0 }, 'failing')
      const { lastExit } = await server.until(
        () => server.worker('ranks'),
        (worker) => worker.state === 'failed',
        PYTHON_MS,
      )
      expect(lastExit!.reason).toBe(
        'Unknown exception: RuntimeError: this rank cannot load (ranks.py, line 19)',
      )
    },
    PYTHON_MS,
  )

  test(
    'no rank outlives its server',
    async () => {
      const pids = ['tp', 'pp', 'pptp'].flatMap((type) => [pidOf(type, 0), pidOf(type, 1)])
      expect(pids.every((pid) => pid > 0)).toBe(true)
      expect(await Promise.all(Object.values(servers).map((server) => server.stop()))).toEqual(
        Object.values(servers).map(() => 0),
      )
      expect(pids.filter(isRunning)).toEqual([])
    },
    PYTHON_MS,
  )
})
