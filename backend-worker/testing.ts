/**
 * Runs a handler in a unit test, without server or socket, with the same code as in a worker.
 *
 * @example
 * ```ts
 * import { runHandler } from 'torchserve-ts/testing'
 * import Countdown from './handler.ts'
 *
 * const { responses } = await runHandler(Countdown, ['go'])
 * expect(responses[0].items).toEqual(['three', 'two', 'one', 'lift-off'])
 * ```
 */
import type { HandlerMethod } from '../common/handler-methods.ts'
import { joinHeaders } from '../common/headers.ts'
import { inspect } from 'node:util'
import { ServeError } from '../common/errors.ts'
import type { PredictRequest } from '../protocol/messages.ts'
import { inEnvelope } from './envelope.ts'
import type { Handler } from './handler.ts'
import { startService } from './load.ts'
import { asHandler } from './loader.ts'
import { modelFrom } from './model.ts'
import { type OnItem, type RunResult, type TestInput, TestRun, toPart } from './testing-run.ts'
import type { InferenceHandler } from './open-inference/types.ts'

export type { OnItem, RunResult, TestInput, TestMetric, TestResponse } from './testing-run.ts'

/**
 * One request: only its `body`, or named parts and headers. Strings arrive as text, bytes as a Buffer, and
 * everything else as JSON.
 */
export type TestRequest = TestInput | { parts: Record<string, TestInput>; headers?: Record<string, string> }

/**
 * A handler with `handle`, or only with methods of the OpenAI API or the Open Inference Protocol. The latter
 * are called as TorchServe's routes call them.
 */
type AnyHandler = Handler | Omit<Handler, 'handle'> | InferenceHandler

export type TestHandler = AnyHandler | (new () => AnyHandler) | Handler['handle']

export interface RunOptions {
  /** Default: none. */
  modelConfig?: Record<string, unknown>
  /** Default: the current folder. */
  modelDir?: string
  /** Default 0. Other ranks send nothing. */
  rank?: number
  worldSize?: number
  /**
   * The method that the requests ask for: `explain` for /explanations, `describe` for a customized describe,
   * or a method of the OpenAI API. Default `handle`.
   */
  method?: Exclude<HandlerMethod, 'predict' | 'predictStream'>
  /** Aborting it cancels all requests, as when clients disconnect. */
  signal?: AbortSignal
  /**
   * Calls the handler step by step, as with continuousBatching in model-config.yaml. All requests join at the
   * first step. Default false.
   */
  continuousBatching?: boolean
  /** The server's service_envelope. Default: none. */
  envelope?: 'body' | 'json' | 'kserve' | 'kservev2'
  /** Window per request in bytes. Default 262144. */
  window?: number
  /** Called for each intermediate response. Make it slow to test backpressure. */
  onItem?: OnItem
}

const LIMIT = 64 * 1024 * 1024

/**
 * Initializes the handler, calls it with one batch of requests, and shuts it down.
 * @throws (rejects with) errors of `initialize` and `shutdown`; errors of `handle` are in the responses
 */
export async function runHandler(
  handler: TestHandler,
  requests: readonly TestRequest[],
  options: RunOptions = {},
): Promise<RunResult> {
  // What a CommonJS module imports from an ES module can be an object with the default export in it.
  const own = asHandler(handler) ?? asHandler((handler as { default?: unknown }).default)
  if (own === undefined)
    throw new ServeError(
      'INVALID_MODEL',
      `handler must be a class, an object or a function with handle or a native method, found ${inspect(handler, { depth: 0 })}`,
    )
  const made = inEnvelope(own, options.envelope)
  const run = new TestRun(requests.length, options.onItem)
  const { service } = await startService(made, model(requests.length, options, run), run)
  run.onCredit = (id, bytes) => {
    service.credit(id, bytes)
  }
  const cancel = (): void => {
    service.cancelAll('client left')
  }
  service.predict({ type: 'predict', requests: requests.map((one, i) => toPredict(one, i, options)) })
  options.signal?.addEventListener('abort', cancel)
  if (options.signal?.aborted === true) cancel()
  await service.idle()
  options.signal?.removeEventListener('abort', cancel)
  service.endSequences()
  await made.shutdown?.()
  return run.result
}

function toPredict(request: TestRequest, id: number, options: RunOptions): PredictRequest {
  const named = typeof request === 'object' && request !== null && 'parts' in request
  const parts = named ? (request as { parts: Record<string, TestInput> }).parts : { body: request }
  return {
    method: options.method ?? 'handle',
    id,
    requestId: `request-${id}`,
    headers: joinHeaders(named ? ((request as { headers?: Record<string, string> }).headers ?? {}) : {}),
    parts: Object.entries(parts).map(([name, value]) => toPart(name, value)),
    window: options.window ?? 262_144,
  }
}

function model(batchSize: number, options: RunOptions, run: TestRun): ReturnType<typeof modelFrom> {
  const rank = options.rank ?? 0
  const ranks = { rank, localRank: rank, worldSize: options.worldSize ?? 1 }
  return modelFrom(
    {
      type: 'load',
      modelName: 'test',
      modelVersion: '1.0',
      modelDir: options.modelDir ?? process.cwd(),
      handlerPath: '',
      manifest: {},
      modelConfig: options.modelConfig ?? {},
      batchSize,
      gpuId: -1,
      serverVersion: '',
      maxResponseBytes: LIMIT,
      maxUnsentBytes: LIMIT,
      decodeInput: true,
      continuousBatching: options.continuousBatching ?? false,
    },
    ranks,
    run,
  )
}
