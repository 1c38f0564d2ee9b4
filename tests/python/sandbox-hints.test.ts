import { beforeAll, expect, test } from '@jest/globals'
import { allReady, PYTHON_MS } from '../support/python/client.ts'
import { pythonFolder } from '../support/python/python-folder.ts'
import { describePython } from '../support/python/test-python.ts'
import { attempt, hintsOf, lineAfter, refusing } from '../support/sandbox-hints.ts'
import { startServer, type Server } from '../support/server.ts'
import { whyNot } from '../security/hostile/matrix.ts'

const reason = await whyNot()
const { path, options } = refusing()
const confined = reason === undefined ? test : test.skip

await describePython(`The operator’s log${reason === undefined ? '' : ` (skipped: ${reason})`}`, (env) => {
  let server: Server

  beforeAll(async () => {
    server = await startServer({
      ...options,
      models: [
        pythonFolder('reads', 'refused', { path, atLoad: 'read' }),
        pythonFolder('lacks', 'refused', { path, atLoad: 'variable' }),
        pythonFolder('requests', 'refused', { path }),
        pythonFolder('fetches', 'refused', { path }),
      ],
      config: { python: env.python },
    })
    await allReady(server, ['requests', 'fetches'])
  }, PYTHON_MS)

  confined('says below a Python handler’s PermissionError at load which keys let it through', async () => {
    const line = await lineAfter(server, 'reads', 'Load failed')
    expect(line).toContain('Hint: this worker runs in sandbox=default, which may be the cause. ')
  })

  confined('names the variable that the handler missed, if the server has it', async () => {
    const line = await lineAfter(server, 'lacks', 'Load failed')
    expect(line).toContain('it does not get the server’s variable PLANTED_SECRET. ')
  })

  confined('says it once for a storm of requests whose traceback is only in the output', async () => {
    expect(await attempt(server, 'requests', 'throw')).toBe(503)
    expect(hintsOf(server, 'requests')).toBe(0)
    for (let k = 0; k < 5; k += 1) expect(await attempt(server, 'requests', 'read')).toBe(503)
    await server.until(
      () => Promise.resolve(hintsOf(server, 'requests')),
      (count) => count > 0,
    )
    expect(await attempt(server, 'requests', 'read')).toBe(503)
    expect(hintsOf(server, 'requests')).toBe(1)
  })

  confined('says it for a missing variable of a request', async () => {
    expect(await attempt(server, 'fetches', 'variable')).toBe(503)
    await server.until(
      () => Promise.resolve(hintsOf(server, 'fetches')),
      (count) => count === 1,
    )
  })
})
