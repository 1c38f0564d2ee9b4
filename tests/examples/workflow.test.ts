import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { inferenceClient, readAll } from '../support/grpc-clients.ts'
import { RawRequest, rawRequest } from '../support/raw-http.ts'
import { REPOSITORY, startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execFileSync } from '../support/tools.ts'

const DOCUMENT = readFileSync(join(REPOSITORY, 'docs/workflows.md'), 'utf8')

/** The document's command line that has this in it, as arguments. */
function commandWith(text: string): string[] {
  const line = DOCUMENT.split('\n').find((candidate) => candidate.includes(text))
  if (line === undefined) throw new Error(`docs/workflows.md has no command with ${text}`)
  return line.split(' ')
}

test('the commands of docs/workflows.md pack the example, register it and stream from it', async () => {
  const store = tempDir()
  const [, ...pack] = commandWith('node dist/model-archiver/workflow-cli.js')
  execFileSync(process.execPath, pack.with(pack.indexOf('--export-path') + 1, store), { cwd: REPOSITORY })
  const server = await startServer({
    modelStore: join(REPOSITORY, 'model-store'),
    config: { workflow_store: store },
  })
  const register = new URL(commandWith('curl -X POST').at(-1)!.replaceAll("'", ''))
  expect((await server.manage('POST', register.pathname + register.search)).json).toEqual({
    status: 'Workflow ascent has been registered and scaled successfully.',
  })

  const path = new URL(commandWith('curl -N').at(-1)!).pathname
  const headers = { 'content-type': 'text/plain' }
  const request = new RawRequest(server.ports.inference, path, { headers, body: 'Moses' })
  await request.gotChunks(1)
  const response = await request.done
  expect(response).toMatchObject({ status: 200, complete: true })
  expect(response.chunks.length).toBeGreaterThan(10)

  const client = inferenceClient(server.ports.grpcInference)
  const input = { data: Buffer.from('Aaron') }
  const { messages, error } = await readAll(client.StreamPredictions({ model_name: 'ascent', input }))
  client.close()
  expect(error).toBeUndefined()
  expect(messages.length).toBeGreaterThan(10)

  const refused = await rawRequest(server.ports.inference, path, { headers, body: '<script>' })
  expect([refused.status, refused.body]).toEqual([500, expect.stringContaining('Error executing prompt')])
})
