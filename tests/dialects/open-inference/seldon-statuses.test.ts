import { status as Status } from '@grpc/grpc-js'
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { ERROR_CODES, type ErrorCode, ServeError } from '../../../common/errors.ts'
import { callError } from '../../../frontend/dialects/open-inference/grpc-errors.ts'
import { errorAnswer } from '../../../frontend/dialects/open-inference/rest-errors.ts'
import { agentLoads, agentLoadsAfter, agentRepeats, envoyRepeats } from '../../support/seldon.ts'

/** With Seldon's header the dialect answers as after an invalid tensor (declared-inputs.test.ts). */
const CODES = ERROR_CODES.filter((code) => code !== 'TENSOR_MISMATCH')

/** Any failure as a handler, a worker or the server tells of it, before or after the request has begun. */
const failures = fc
  .record({
    code: fc.constantFrom(...CODES),
    status: fc.integer({ min: 400, max: 599 }),
    begun: fc.boolean(),
  })
  .map(({ code, status, begun }) => {
    const chosen = code === 'HANDLER_REJECTED' ? { status } : {}
    return new ServeError(code, 'why', { ...chosen, begun })
  })

/** Without the model at the server, or a server that is about to end, a load helps. */
const MISSING: readonly ErrorCode[] = ['MODEL_NOT_FOUND', 'VERSION_NOT_FOUND', 'WORKFLOW_NOT_FOUND']
const AWAY: readonly ErrorCode[] = ['MODEL_NOT_READY', 'SHUTTING_DOWN', 'WORKER_LOST']
/** Another try may find room. */
const FULL: readonly ErrorCode[] = ['QUEUE_FULL', 'RATE_LIMITED', 'PAYLOAD_TOO_LARGE']

/** What a handler itself asks to be tried again. */
function asksAgain({ code, status }: ServeError, ...statuses: number[]): boolean {
  return code === 'HANDLER_REJECTED' && statuses.includes(status ?? 500)
}

function repeatedByEnvoy(error: ServeError): boolean {
  const { status, headers } = errorAnswer(error)
  return envoyRepeats(status, headers.includes('x-envoy-ratelimited'))
}

describe('what Seldon Core does with a failure', () => {
  test('the agent loads a model only if that is missing or not ready', () => {
    fc.assert(
      fc.property(failures, (error) => {
        const mayLoad = !error.begun && [...MISSING, ...AWAY].includes(error.code)
        if (agentLoads(callError(error).code)) expect(mayLoad).toBe(true)
        const isMissing = [...MISSING, 'ROUTE_NOT_FOUND'].includes(error.code)
        if (agentLoadsAfter(errorAnswer(error).status)) expect(isMissing).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })

  test('nobody repeats a request that has begun, unless its handler asks for that', () => {
    fc.assert(
      fc.property(failures, (error) => {
        if (!error.begun) return
        expect(agentRepeats(callError(error).code)).toBe(asksAgain(error, 429, 503))
        expect(repeatedByEnvoy(error)).toBe(asksAgain(error, 503))
        expect(agentLoads(callError(error).code) || agentLoadsAfter(errorAnswer(error).status)).toBe(false)
      }),
      { numRuns: 2_000 },
    )
  })

  test('a request that has not begun is repeated where the server is full or about to be ready', () => {
    for (const code of ERROR_CODES) {
      const error = new ServeError(code, 'why')
      if (code === 'HANDLER_REJECTED') continue
      expect([code, agentRepeats(callError(error).code)]).toEqual([code, [...FULL, ...AWAY].includes(code)])
      expect([code, repeatedByEnvoy(error)]).toEqual([code, AWAY.includes(code)])
    }
  })

  test('a full queue says when to come again', () => {
    const { status, headers } = errorAnswer(new ServeError('QUEUE_FULL', 'full'))
    expect([status, headers]).toEqual([429, ['Retry-After', '1']])
    expect(callError(new ServeError('QUEUE_FULL', 'full')).code).toBe(Status.RESOURCE_EXHAUSTED)
  })
})
