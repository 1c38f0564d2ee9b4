import { join } from 'node:path'
import { beforeAll, expect, test } from '@jest/globals'
import { PYTHON_MS } from '../support/python/client.ts'
import { describePython } from '../support/python/test-python.ts'
import { rawRequest } from '../support/raw-http.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'
import { WorkflowStore } from '../support/workflows.ts'

const FUNCTIONS = join(REPOSITORY, 'tests/support/python/handlers/functions.py')

await describePython('Workflows with Python functions', ({ python }) => {
  const store = new WorkflowStore()
  let server: Server

  beforeAll(async () => {
    server = await startServer({ config: { python, workflow_store: store.folder } })
    await store.pack('shouting', 'dag: {shout: [join]}', FUNCTIONS)
    await store.pack('failing', 'models: {retry-attempts: 1}\ndag: {fail: []}', FUNCTIONS)
  }, PYTHON_MS)

  const ask = (name: string) => rawRequest(server.ports.inference, `/wfpredict/${name}`, { body: 'hello' })

  test(
    'each function is a worker of its own, called in the order of the graph',
    async () => {
      const { status } = await server.manage('POST', '/workflows?url=shouting.war')
      expect(status).toBe(200)
      expect(await ask('shouting')).toMatchObject({ status: 200, body: 'HELLO!' })
    },
    PYTHON_MS,
  )

  test(
    'a function that raises fails the workflow',
    async () => {
      await server.manage('POST', '/workflows?url=failing.war')
      expect((await ask('failing')).status).toBe(500)
    },
    PYTHON_MS,
  )
})
