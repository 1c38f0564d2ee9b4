import { beforeAll, expect, test } from '@jest/globals'
import { COUNT } from '../support/count.ts'
import { type Call, type Code, CODES, type Fault, Faults } from '../support/faults.ts'
import { answerOf, PYTHON_MS } from '../support/python/client.ts'
import { pythonFolder } from '../support/python/python-folder.ts'
import { describePython } from '../support/python/test-python.ts'
import { type Server, startServer } from '../support/server.ts'
import { VerifyingLoad } from '../support/verifying-load.ts'

const PROBE: Fault = { call: 'spawn', code: 'EAGAIN', text: 'see_as_worker' }

const PLACES: [what: string, call: Call, text: string][] = [
  ['its folder', 'mkdir', '/ts-'],
  ['its program', 'spawn', 'model_service_worker.py'],
  ['the connection to it', 'connect', '/ts-'],
]

await describePython(
  'calls in the life of a Python worker that fail while a load is verified',
  ({ python }) => {
    let server: Server
    let load: VerifyingLoad
    const faults = new Faults()

    beforeAll(async () => {
      faults.make(PROBE)
      const ops = pythonFolder('ops', 'ops', { maxWorkers: 2 })
      server = await startServer({ models: [COUNT, ops], config: { python }, ...faults.options })
      await server.ready('count')
      load = new VerifyingLoad(server)
    }, PYTHON_MS)

    const scale = async (count: number, synchronous: boolean): Promise<number> =>
      (await server.manage('PUT', `/models/ops?min_worker=${count}&synchronous=${synchronous}`)).status

    const works = async (): Promise<void> => {
      faults.heal()
      await server.ready('ops', PYTHON_MS)
      expect(await answerOf(server, 'ops', { op: 'echo' })).toEqual({ op: 'echo' })
      await load.goesOn()
    }

    test(
      'the probe of its interpreter: spawn, EAGAIN',
      async () => {
        expect((await server.lines('Load failed'))[0]).toContain('EAGAIN')
        expect(faults.hits(PROBE)).toBeGreaterThan(0)
        await works()
      },
      PYTHON_MS,
    )

    test.each(
      PLACES.flatMap(([what, call, text]) =>
        CODES[call].map((code): [string, Call, Code, string] => [what, call, code, text]),
      ),
    )(
      '%s: %s, %s',
      async (_what, call, code, text) => {
        const fault: Fault = { call, code, text }
        const lines = server.output.length
        faults.make(fault)
        expect(await scale(2, false)).toBe(202)
        await server.until(
          async () => server.output.slice(lines),
          (found) => found.some((line) => line.includes('Load failed') && line.includes(code)),
          PYTHON_MS,
        )
        expect(faults.hits(fault)).toBeGreaterThan(0)
        await load.goesOn()
        await works()
        expect(await scale(1, true)).toBe(200)
      },
      PYTHON_MS,
    )

    test('afterwards no request is lost, and the server drains', async () => {
      expect(await load.end()).toBeGreaterThan(0)
      expect((await server.worker('count')).restarts).toBe(0)
      expect(await server.stop()).toBe(0)
    })
  },
)
