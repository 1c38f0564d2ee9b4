import { ServeError } from '../common/errors.ts'
import { body, json, kserve, kserveV2, type Open, type Opened } from './envelope-formats.ts'
import type { Context, Handler, HandlerRequest, HandlerResponse } from './handler.ts'
import { isAsyncIterable } from './intermediate.ts'
import type { LoadedHandler } from './loader.ts'
import { checkAnswer } from './output.ts'

const ENVELOPES: ReadonlyMap<string, Open> = new Map([
  ['body', body],
  ['json', json],
  ['kserve', kserve],
  ['kservev2', kserveV2],
])

/**
 * Request envelopes (key service_envelope, docs/envelopes.md) of TorchServe's routes. A handler without a
 * `handle` of its own has none, even if the server sets one for all models. `handle` and `explain` get
 * the rows of all requests of a batch in one list. Their outputs, one per row, return to the requests in
 * the envelope's format. Stream items are addressed to requests and pass unchanged. A request with
 * another format fails alone.
 * @throws ServeError INVALID_MODEL when no envelope has this name
 */
export function inEnvelope(handler: LoadedHandler, name: string | undefined): LoadedHandler {
  if (name === undefined || !handler.methods.includes('handle')) return handler
  const open = ENVELOPES.get(name)
  if (open === undefined) {
    const known = [...ENVELOPES.keys()].join(', ')
    throw new ServeError('INVALID_MODEL', `service_envelope "${name}" is not supported; use one of ${known}`)
  }
  return {
    ...handler,
    handle: around(open, handler.handle),
    explain: handler.explain && around(open, handler.explain),
  }
}

type Handle = NonNullable<Handler['explain']>

function around(open: Open, handle: Handler['handle']): Handle {
  const wrapped = async (requests: HandlerRequest[], context: Context): Promise<unknown> => {
    const opened = requests.map((request, index) => openOrRefuse(open, request, context, index))
    const rows = opened.flatMap((one) => (one instanceof ServeError ? [] : one.rows))
    if (rows.length === 0) return close(opened, [])
    // The handler gets the rows, not the parts of the requests.
    const answer: unknown = await handle(rows as HandlerRequest[], context)
    if (isAsyncIterable(answer)) return refusing(answer, opened)
    return close(opened, outputsOf(answer, opened.length === 1 ? undefined : rows.length))
  }
  // A streaming handler returns an async iterable, possibly as a promise; both are served.
  return wrapped as Handle
}

function openOrRefuse(
  open: Open,
  request: HandlerRequest,
  context: Context,
  index: number,
): Opened | ServeError {
  try {
    return open(request['data'] ?? request['body'] ?? request, context, index)
  } catch (thrown) {
    return ServeError.from(thrown)
  }
}

/** With a single request, any list is its response, as in TorchServe. */
function outputsOf(answer: unknown, expected: number | undefined): unknown[] {
  return checkAnswer(answer, expected ?? (Array.isArray(answer) ? answer.length : 0))
}

function close(opened: readonly (Opened | ServeError)[], outputs: readonly unknown[]): HandlerResponse[] {
  let from = 0
  return opened.map((one) => {
    if (one instanceof ServeError) return one
    const own = opened.length === 1 ? outputs : outputs.slice(from, from + one.rows.length)
    from += one.rows.length
    return own.find((output) => output instanceof Error) ?? one.close(own)
  })
}

/** Stream items, and the last ones that the generator returns, have one place per request. */
async function* refusing(
  stream: AsyncIterable<unknown>,
  opened: readonly (Opened | ServeError)[],
): AsyncGenerator {
  const inPlace = (items: unknown): unknown =>
    Array.isArray(items)
      ? items.map((item: unknown, i) => (opened[i] instanceof ServeError ? opened[i] : item))
      : items
  const iterator = stream[Symbol.asyncIterator]()
  try {
    for (;;) {
      const next: IteratorResult<unknown, unknown> = await iterator.next()
      if (next.done === true) return inPlace(next.value)
      yield inPlace(next.value)
    }
  } finally {
    await iterator.return?.()
  }
}
