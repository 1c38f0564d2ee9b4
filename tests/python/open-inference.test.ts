import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { allReady, PYTHON_MS } from '../support/python/client.ts'
import { pythonFolder } from '../support/python/python-folder.ts'
import { describePython } from '../support/python/test-python.ts'
import { inferenceV2Client, readAll, type Message } from '../support/grpc-clients.ts'
import { startServer, type Server } from '../support/server.ts'

/** What the handler shall do, as a tensor of one text. */
const ASKED = JSON.stringify({ op: 'stream', n: 3 })

await describePython('A streaming Python handler, unchanged', ({ python }) => {
  let server: Server
  let client: ReturnType<typeof inferenceV2Client>

  beforeAll(async () => {
    server = await startServer({
      models: [pythonFolder('ops', 'ops')],
      config: { python, open_inference_grpc_port: 0 },
    })
    await allReady(server, ['ops'])
    client = inferenceV2Client(server.ports.openInference, 'mlserver')
  }, PYTHON_MS)

  afterAll(() => client.close())

  test('serves infer_stream: an event for each frame', async () => {
    const response = await fetch(`http://127.0.0.1:${server.ports.inference}/v2/models/ops/infer_stream`, {
      method: 'POST',
      body: JSON.stringify({ inputs: [{ name: 'body', shape: [1], datatype: 'BYTES', data: [ASKED] }] }),
    })
    const events = (await response.text()).trimEnd().split('\n\n')
    const texts = events.map((event) => {
      const { outputs } = JSON.parse(event.slice('data: '.length)) as { outputs: { data: string[] }[] }
      return outputs[0]!.data[0]
    })
    expect(texts).toEqual(['0:', '1:', '2:', 'last'])
  })

  test('serves ModelStreamInfer: a message for each frame', async () => {
    const duplex = client.ModelStreamInfer()
    const contents = { bytes_contents: [Buffer.from(ASKED)] }
    duplex.write({ model_name: 'ops', inputs: [{ name: 'body', shape: [1], datatype: 'BYTES', contents }] })
    duplex.end()
    const { messages, error } = await readAll(duplex)
    expect(error).toBeUndefined()
    const texts = messages.map((got: Message) => {
      const [output] = got['outputs'] as { contents: { bytes_contents: Buffer[] } }[]
      return output!.contents.bytes_contents.toString()
    })
    expect(texts).toEqual(['0:', '1:', '2:', 'last'])
  })
})
