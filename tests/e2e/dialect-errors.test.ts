import { beforeAll, describe, expect, test } from '@jest/globals'
import { ALL_DIALECTS, ask, CASES, expectRefused, type PortDialect } from '../support/dialects.ts'
import { PACED, pacedModels } from '../support/paced.ts'
import { startServer, type Server } from '../support/server.ts'

const MAX_REQUEST = 50_000
const MAX_RESPONSE = 20_000

let server: Server

beforeAll(async () => {
  server = await startServer({
    models: pacedModels({ minWorkers: 1, maxWorkers: 1, asyncCommunication: true, maxConcurrency: 10 }),
    config: { ...ALL_DIALECTS, max_request_size: MAX_REQUEST, max_response_size: MAX_RESPONSE },
  })
  await Promise.all(PACED.map((model) => server.ready(model)))
})

/** What the families of dialects say. */
interface Statuses {
  failed: string
  requestTooLarge: string
  responseTooLarge: string
}

const http = (failed: string): Statuses => ({ failed, requestTooLarge: '413', responseTooLarge: '500' })
const grpc = (failed: string, responseTooLarge = 'RESOURCE_EXHAUSTED'): Statuses => {
  return { failed, requestTooLarge: 'RESOURCE_EXHAUSTED', responseTooLarge }
}

function statusesOf({ name }: PortDialect, model: string): Statuses {
  if (name.startsWith('TorchServe /')) return http('503')
  if (name.endsWith('Predictions2') || (name.endsWith('(Triton)') && name.includes('Stream')))
    return grpc('error_message', 'error_message')
  if (name.startsWith('TorchServe ')) return grpc('UNAVAILABLE')
  if (name === 'V2 ModelInfer (TorchServe)' && model === 'paced') return grpc('UNAVAILABLE')
  if (name.startsWith('V2 Model')) return grpc('INTERNAL', 'INTERNAL')
  return http('500')
}

const STREAMS = CASES.filter(([, , dialect]) => !dialect.whole)
const WHOLE = CASES.filter(([, , dialect]) => dialect.whole)

/** TorchServe's routes always stream what predictStream sends. */
function isWhole({ name }: PortDialect, model: string): boolean {
  return model !== 'native' || name !== 'TorchServe /predictions whole'
}

/** The chunks of a chat come from the handler. */
function isChat({ name, whole }: PortDialect, model: string): boolean {
  return model === 'chat' ? !whole : model === 'native' && name === 'OpenAI chat stream'
}

describe('a handler', () => {
  test.each(CASES)(
    'that fails before its first item, or is not there, gives a status: %s, %s',
    async (_name, model, dialect) => {
      expectRefused(await ask(server, dialect, model, { fail: 0 }), statusesOf(dialect, model).failed)
      expectRefused(await ask(server, dialect, 'no-such-model', {}), dialect.notFound)
    },
  )

  test.each(STREAMS)(
    'that fails after two items has sent them, and no normal end: %s, %s',
    async (_name, model, dialect) => {
      const { items, end } = await ask(server, dialect, model, { fail: 2, n: 5, gap: 20 })
      expect(items.map(({ text }) => text.trim())).toEqual(['1', '2'])
      expect(end.kind).toBe('failed')
    },
  )

  test.each(WHOLE)(
    'that fails after two items leaves nothing of a whole answer: %s, %s',
    async (_name, model, dialect) => {
      if (!isWhole(dialect, model)) return
      expectRefused(await ask(server, dialect, model, { fail: 2, n: 5 }), statusesOf(dialect, model).failed)
    },
  )

  test.each(CASES)('is not asked by a request that is too large: %s, %s', async (_name, model, dialect) => {
    const asked = await ask(server, dialect, model, { pad: 1, fill: 'x'.repeat(2 * MAX_REQUEST) })
    expectRefused(asked, statusesOf(dialect, model).requestTooLarge)
  })

  test.each(CASES)('that sends too much at once fails: %s, %s', async (_name, model, dialect) => {
    const asked = await ask(server, dialect, model, { n: 1, pad: 2 * MAX_RESPONSE })
    // Its first item is the chunk with the role.
    if (isChat(dialect, model)) expect(asked.end.kind).toBe('failed')
    else expectRefused(asked, statusesOf(dialect, model).responseTooLarge)
  })

  test.each(WHOLE)(
    'whose items are too many for a whole answer fails: %s, %s',
    async (_name, model, dialect) => {
      if (!isWhole(dialect, model)) return
      const asked = await ask(server, dialect, model, { n: 10, pad: MAX_RESPONSE / 5 })
      expectRefused(asked, statusesOf(dialect, model).responseTooLarge)
    },
  )
})
