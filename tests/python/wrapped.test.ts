import { realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { commandOf, isRunning } from '../support/processes.ts'
import { allReady, answerOf, predict, PYTHON_MS } from '../support/python/client.ts'
import { pythonFolder } from '../support/python/python-folder.ts'
import { describePython } from '../support/python/test-python.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { recipe, whyNoBubblewrap } from '../support/wrapper-recipes.ts'

const reason = whyNoBubblewrap()
const bubblewrapped = reason === undefined ? describe : describe.skip

await describePython('A Python model behind bubblewrap', ({ python }) => {
  bubblewrapped(reason === undefined ? 'as in the recipe' : `(skipped: ${reason})`, () => {
    let server: Server
    const logs = tempDir()

    beforeAll(async () => {
      // Python may be elsewhere than in /usr, and the ranks note what they do.
      const base = dirname(dirname(realpathSync(python)))
      const extra = `--ro-bind ${base} ${base} --bind ${logs} ${logs}`
      server = await startServer({
        models: [
          pythonFolder('ops', 'ops'),
          pythonFolder('own', 'ops', { useVenv: true }),
          pythonFolder('ranks', 'ranks', { parallelType: 'tp', torchrun: { 'nproc-per-node': 2 } }),
        ],
        config: { python, worker_wrapper: `${recipe('bwrap')} ${extra}` },
        env: { RANK_LOG: logs },
      })
      await allReady(server, ['ops', 'own', 'ranks'])
    }, PYTHON_MS)

    test.each(['ops', 'own'])('%s answers, and its pid is that of Python', async (model) => {
      expect((await predict(server, model, { op: 'headers' })).status).toBe(200)
      const { pid, memoryUsage } = await server.worker(model)
      expect(commandOf(pid)).toContain('--sock-name')
      expect(commandOf(pid)[0]).toMatch(/python/)
      expect(memoryUsage).toBeGreaterThan(5_000_000)
    })

    test('ranks of torchrun share one sandbox, and end with it', async () => {
      const response = await predict(server, 'ranks', {})
      expect(response.chunks.map(String)).toEqual(['from rank 0\n', 'end of rank 0 of 2'])
      const { pid } = await server.worker('ranks')
      expect(commandOf(pid)).not.toContain('torch.distributed.run')
      await server.manage('DELETE', '/models/ranks')
      await server.until(
        async () => isRunning(pid),
        (runs) => !runs,
      )
    })

    test('what a handler started ends with its worker', async () => {
      const { child } = await answerOf<{ child: number }>(server, 'ops', { op: 'parent' })
      expect(child).toBeGreaterThan(1)
      const { pid } = await server.worker('ops')
      await server.stop('SIGKILL')
      await server.until(
        async () => isRunning(pid),
        (runs) => !runs,
      )
    })
  })
})
