import { expect, test } from '@jest/globals'
import { createInferenceApp } from '../../../frontend/dialects/rest-apps.ts'
import { decodeRequest, encodeResponse, TENSORS_TYPE } from '../../../common/tensors/message.ts'
import { ask, startRig, type Answer, type Rig } from '../../support/http/rig.ts'

const INPUT = { name: 'x', shape: [1], datatype: 'INT32', data: [7] }
const Y = { name: 'y', shape: [1], datatype: 'INT32', data: [1] }
const Z = { name: 'z', shape: [1], datatype: 'INT32', data: [2] }

/** A listener whose model has a handler with `handle` that returns this. */
async function answering(body: string, mapping?: 'json'): Promise<Rig> {
  const rig = await startRig(createInferenceApp, { openInferenceProtocol: true })
  const { models } = rig
  models.onJob = (job) => job.respond({ status: 200, headers: {}, body: Buffer.from(body) })
  const status = models.status.bind(models)
  models.status = (name, version) => ({ ...status(name, version), config: { openInference: { mapping } } })
  return rig
}

function infer(rig: Rig, outputs: object[], path = '/v2/models/m/infer'): Promise<Answer> {
  return ask(rig, path, { method: 'POST', body: JSON.stringify({ inputs: [INPUT], outputs }) })
}

function names(answer: Answer): string[] {
  return (answer.json() as { outputs: { name: string }[] }).outputs.map(({ name }) => name)
}

test('of a handler that knows no outputs the client gets those that it names', async () => {
  const plain = await answering('text')
  expect(names(await infer(plain, [{ name: 'output' }]))).toEqual(['output'])
  const two = await answering(JSON.stringify({ outputs: [Y, Z] }))
  expect(names(await infer(two, [{ name: 'z' }]))).toEqual(['z'])
  expect(names(await infer(two, [{ name: 'z' }, { name: 'y' }]))).toEqual(['z', 'y'])
})

test.each(['/v2/models/m/infer', '/v2/models/m/infer_stream'])(
  '%s: an output that is not there is an error',
  async (path) => {
    const answer = await infer(await answering('text'), [{ name: 'none' }], path)
    expect([answer.status, answer.json()]).toEqual([422, { error: 'The model has no output none' }])
  },
)

test.each(['shared_memory_region', 'classification'])(
  'the parameter %s of an output is refused',
  async (name) => {
    const answer = await infer(await answering('text'), [{ name: 'output', parameters: { [name]: 'a' } }])
    expect([answer.status, answer.json()]).toEqual([
      422,
      { error: `Output output: the parameter ${name} is not supported` },
    ])
  },
)

test('a handler that reads the whole request chooses the outputs itself', async () => {
  const rig = await answering(JSON.stringify({ outputs: [Y, Z] }), 'json')
  expect(names(await infer(rig, [{ name: 'none' }]))).toEqual(['y', 'z'])
})

test('an empty list of outputs names none: all are sent, as over gRPC', async () => {
  const plain = await answering('text')
  expect(names(await infer(plain, []))).toEqual(['output'])
  plain.models.methods = ['predict']
  plain.models.onJob = (job) => {
    const { outputs, inputs } = decodeRequest(job.request.parts[0]!.data)
    const body = encodeResponse({ outputs: outputs === undefined ? inputs : [] })
    job.respond({ status: 200, headers: {}, contentType: TENSORS_TYPE, body })
  }
  expect(names(await infer(plain, []))).toEqual(['x'])
})
