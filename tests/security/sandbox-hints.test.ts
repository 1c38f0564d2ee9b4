import { beforeAll, describe, expect, test } from '@jest/globals'
import { modelFolder } from '../support/model-folder.ts'
import { attempt, hintsOf, lineAfter, refusing, workerLog } from '../support/sandbox-hints.ts'
import { startServer, type Server } from '../support/server.ts'
import { whyNot } from './hostile/matrix.ts'

const reason = await whyNot()
const { path, options } = refusing()

const refused = (name: string, sandbox: string, atLoad = ''): string =>
  modelFolder(name, 'refused', { minWorkers: 1, maxWorkers: 1, path, sandbox, atLoad })

const confined = reason === undefined ? describe : describe.skip

confined(`The operator’s log${reason === undefined ? '' : ` (skipped: ${reason})`}`, () => {
  let server: Server
  const ready = ['requests', 'networks', 'names', 'free']

  beforeAll(async () => {
    server = await startServer({
      ...options,
      models: [
        refused('reads', 'default', 'read'),
        refused('lacks', 'default', 'variable'),
        refused('throws', 'default', 'throw'),
        refused('requests', 'default'),
        refused('networks', 'strict'),
        refused('names', 'strict'),
        refused('free', 'off'),
      ],
      config: { sandbox_by_model: true },
    })
    await Promise.all(ready.map((model) => server.ready(model)))
  })

  test('says below a handler’s EACCES at load which keys let it through', async () => {
    const line = await lineAfter(server, 'reads', 'Load failed')
    expect(line).toContain('Hint: this worker runs in sandbox=default, which may be the cause. ')
    const keys = ['sandbox_read', 'sandbox_write', 'worker_network', 'worker_env', 'model_env']
    for (const key of [...keys, 'sandbox_by_model']) expect(line).toContain(key)
    expect(line).toContain('docs/security.md#my-handler-gets-eacces')
  })

  test('names the variable that the handler missed, if the server has it', async () => {
    const line = await lineAfter(server, 'lacks', 'Load failed')
    expect(line).toContain('it does not get the server’s variable PLANTED_SECRET. ')
    expect(line).not.toContain('planted')
  })

  test('has no hint for what the sandbox cannot have caused', async () => {
    await server.until(
      () => Promise.resolve(workerLog(server, 'throws').filter((line) => line.includes('Load failed'))),
      (failures) => failures.length >= 2,
    )
    expect(hintsOf(server, 'throws')).toBe(0)
  })

  test('says it once for a storm of failed requests', async () => {
    expect(await attempt(server, 'requests', 'throw')).toBe(503)
    expect(hintsOf(server, 'requests')).toBe(0)
    const statuses = await Promise.all(Array.from({ length: 20 }, () => attempt(server, 'requests', 'read')))
    expect(new Set(statuses)).toEqual(new Set([503]))
    expect(await lineAfter(server, 'requests', 'EACCES')).toContain('Hint: ')
    expect(await attempt(server, 'requests', 'throw')).toBe(503)
    expect(hintsOf(server, 'requests')).toBe(1)
  })

  test('says it for a connection, and for a host’s name, that strict refused', async () => {
    for (const [model, what, error] of [
      ['networks', 'connect', 'EPERM'],
      ['names', 'look up', 'EAI_AGAIN'],
    ] as const) {
      expect(await attempt(server, model, what)).toBe(503)
      expect(await lineAfter(server, model, error)).toContain('sandbox=strict without network')
    }
  })

  test('has none for a worker without sandbox', async () => {
    expect(await attempt(server, 'free', 'variable')).toBe(503)
    expect(await attempt(server, 'free', 'read')).toBe(200)
    expect(hintsOf(server, 'free')).toBe(0)
  })
})
