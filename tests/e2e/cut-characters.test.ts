import { beforeAll, expect, test } from '@jest/globals'
import { ALL_DIALECTS, ask, CASES } from '../support/dialects.ts'
import { PACED, pacedModels } from '../support/paced.ts'
import { startServer, type Server } from '../support/server.ts'

let server: Server

beforeAll(async () => {
  server = await startServer({ models: pacedModels({}), config: ALL_DIALECTS })
  await Promise.all(PACED.map((model) => server.ready(model)))
})

const UNITS = 'a\u{1f600}\u{1f601}z\ud83d\n'
const TEXT = 'a\u{1f600}\u{1f601}z\ufffd'

// There a handler with `handle` must answer with tensors as JSON.
const SERVED = CASES.filter(([name, model]) => !(name === 'V2 ModelInfer (TorchServe)' && model === 'paced'))

test.each(SERVED)(
  'a character whose halves are items of their own arrives whole, and a half alone is one U+FFFD: %s, %s',
  async (_name, model, dialect) => {
    const { items, end } = await ask(server, dialect, model, { units: UNITS })
    expect(end).toEqual({ kind: 'finished' })
    expect(
      items
        .map(({ text }) => text)
        .join('')
        .trim(),
    ).toBe(TEXT)
  },
)
