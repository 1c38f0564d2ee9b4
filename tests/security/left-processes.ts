import { beforeAll, expect, test } from '@jest/globals'
import { childrenOf, commandOf, isRunning } from '../support/processes.ts'
import { allReady, answerOf, predict, PYTHON_MS } from '../support/python/client.ts'
import { startServer, type Server, type ServerOptions } from '../support/server.ts'

/** For the worker that hangs; by default it is waited for ten seconds. */
const GRACE_MS = 500
const MODELS = ['killed', 'exits', 'hangs', 'unregistered', 'kept']

/**
 * What a handler started ends with its worker, whatever ends that: children, also with an empty environment,
 * those with a session of their own, and daemons, whose parents have ended.
 * @param folder of a model with the handler `parent`
 */
export function testLeftProcesses(
  folder: (name: string, config: Record<string, unknown>) => string,
  config: ServerOptions['config'],
): void {
  let server: Server

  const start = async (models: readonly string[]): Promise<Server> => {
    const started = await startServer({
      models: models.map((name) => folder(name, name === 'hangs' ? { responseTimeout: 1 } : {})),
      config: { ...config, cancel_grace_ms: GRACE_MS },
    })
    await allReady(started, models)
    return started
  }

  /** The pids of the worker and of what its handler started. */
  const family = async (model: string, on = server): Promise<number[]> => {
    const { pids } = await answerOf<{ pids: number[] }>(on, model, { op: 'start' })
    const all = [(await on.worker(model)).pid, ...pids]
    expect(all.map(isRunning)).toEqual([true, true, true, true])
    return all
  }

  const gone = async (pids: readonly number[]): Promise<void> => {
    await server.until(
      async () => pids.filter(isRunning),
      (left) => left.length === 0,
    )
  }

  beforeAll(async () => {
    server = await start(MODELS)
  }, PYTHON_MS)

  test('when the worker is killed', async () => {
    const pids = await family('killed')
    process.kill(pids[0]!, 'SIGKILL')
    await gone(pids)
  })

  test('when the handler ends its process', async () => {
    const pids = await family('exits')
    await predict(server, 'exits', { op: 'exit' })
    await gone(pids)
  })

  test('when the server kills a worker that hangs', async () => {
    const pids = await family('hangs')
    await predict(server, 'hangs', { op: 'hang' })
    await gone(pids)
  })

  test('when the model is unregistered, and not those of other models', async () => {
    const kept = await family('kept')
    const pids = await family('unregistered')
    expect((await server.manage('DELETE', '/models/unregistered')).status).toBe(200)
    await gone(pids)
    expect(kept.filter(isRunning)).toEqual(kept)
  })

  test('when the server stops', async () => {
    const pids = await family('kept')
    expect(await server.stop()).toBe(0)
    expect(pids.filter(isRunning)).toEqual([])
  })

  test(
    'when the server is killed',
    async () => {
      const other = await start(['kept'])
      const pids = await family('kept', other)
      await other.stop('SIGKILL')
      await gone(pids)
    },
    PYTHON_MS,
  )

  test(
    'when the server is killed, though the worker stands still and its guard was killed before',
    async () => {
      const other = await start(['kept', 'exits'])
      const guard = guardOf(other.pid)
      process.kill(guard!, 'SIGKILL')
      await other.until(
        async () => guardOf(other.pid),
        (now) => now !== undefined && now !== guard,
      )
      const pids = await family('kept', other)
      const { pid } = await other.worker('exits')
      for (const each of [pids[0]!, pid]) process.kill(each, 'SIGSTOP')
      await other.stop('SIGKILL')
      await gone([...pids, pid])
    },
    PYTHON_MS,
  )
}

/** The process that ends what a killed server leaves. */
function guardOf(server: number): number | undefined {
  return childrenOf(server).find((pid) => isRunning(pid) && commandOf(pid).includes('torchserve-ts-guard'))
}
