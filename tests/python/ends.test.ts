import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { isRunning } from '../support/processes.ts'
import { allReady, answerOf, begin, PYTHON_MS } from '../support/python/client.ts'
import { pythonFolder } from '../support/python/python-folder.ts'
import { describePython } from '../support/python/test-python.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

await describePython('How Python workers end', ({ python }) => {
  const config = { python }

  /** Pids of the first workers of these models. */
  async function pidsOf(server: Server, models: readonly string[]): Promise<number[]> {
    return Promise.all(models.map(async (model) => (await server.worker(model)).pid))
  }

  async function gone(server: Server, pids: readonly number[]): Promise<void> {
    expect(pids.every((pid) => pid > 0)).toBe(true)
    await server.until(
      async () => pids.filter(isRunning),
      (left) => left.length === 0,
    )
  }

  test(
    'Ctrl-C, which a terminal sends to all processes, lets running streams finish',
    async () => {
      const models = ['ops', 'side']
      const server = await startServer({
        models: [pythonFolder('ops', 'ops'), pythonFolder('side', 'coroutine', { asyncCommunication: true })],
        config,
        detached: true,
      })
      await allReady(server, models)
      const pids = await pidsOf(server, models)
      const streams = [
        begin(server, 'ops', { op: 'stream', n: 20, ms: 50 }),
        begin(server, 'side', { name: 's', n: 20, ms: 50 }),
      ]
      await Promise.all(streams.map((stream) => stream.gotChunks(2)))
      const exit = once(server.process, 'exit')
      process.kill(-server.pid, 'SIGINT')
      for (const { complete, chunks } of await Promise.all(streams.map(({ done }) => done)))
        expect([complete, chunks.length]).toEqual([true, 21])
      expect(await exit).toEqual([0, null])
      await gone(server, pids)
      expect(server.output.join('\n')).not.toMatch(/Traceback|KeyboardInterrupt|Worker died/)
    },
    PYTHON_MS,
  )

  test(
    'none outlives a server that was killed: idle, at work, with coroutines, or a child of theirs',
    async () => {
      const models = ['idle', 'busy', 'parent', 'side']
      const server = await startServer({
        models: [
          ...['idle', 'busy', 'parent'].map((name) => pythonFolder(name, 'ops')),
          pythonFolder('side', 'coroutine', { asyncCommunication: true }),
        ],
        config,
      })
      await allReady(server, models)
      const { child } = await answerOf<{ child: number }>(server, 'parent', { op: 'parent' })
      const working = [
        begin(server, 'busy', { op: 'stream', n: 2, ms: 600_000 }),
        begin(server, 'side', { name: 's', n: 2, ms: 600_000 }),
      ]
      await working[0]!.gotChunks(1)
      const pids = await pidsOf(server, models)
      await server.stop('SIGKILL')
      for (const { done } of working) expect((await done).complete).toBe(false)
      await gone(server, [...pids, child])
    },
    PYTHON_MS,
  )

  test(
    'no rank outlives a server that was killed, nor a torchrun that was, though it is at work',
    async () => {
      const folder = tempDir()
      const server = await startServer({
        models: [pythonFolder('ranks', 'ranks', { parallelType: 'tp', torchrun: { 'nproc-per-node': 2 } })],
        config,
        env: { RANK_LOG: folder },
      })
      const ranks = (): number[] =>
        [0, 1].map((rank) => {
          const file = join(folder, `rank-${rank}.log`)
          const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
          return Number([...text.matchAll(/pid=(\d+)/g)].at(-1)?.[1] ?? 0)
        })
      const work = async (): Promise<number[]> => {
        await allReady(server, ['ranks'])
        await begin(server, 'ranks', { sleep: 600 }).gotChunks(1)
        return ranks()
      }
      const first = await work()
      process.kill(parentOf(first[0]!), 'SIGKILL')
      await gone(server, first)
      await server.until(
        async () => ranks(),
        (now) => !now.some((pid) => first.includes(pid)),
        PYTHON_MS,
      )
      const second = await work()
      await server.stop('SIGKILL')
      await gone(server, second)
    },
    PYTHON_MS,
  )

  test(
    'what a handler started ends with its worker',
    async () => {
      const server = await startServer({ models: [pythonFolder('ops', 'ops')], config })
      await allReady(server, ['ops'])
      const { child } = await answerOf<{ child: number }>(server, 'ops', { op: 'parent' })
      const { pid } = await server.worker('ops')
      expect(isRunning(child)).toBe(true)
      process.kill(pid, 'SIGKILL')
      await gone(server, [pid, child])
    },
    PYTHON_MS,
  )
})

function parentOf(pid: number): number {
  return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))![1])
}
