import { expect, test } from '@jest/globals'
import { ERROR_CODES, ServeError, type ErrorCode } from '../../../common/errors.ts'
import { errorAnswer } from '../../../frontend/dialects/torchserve/rest-errors.ts'

const answerTo = (code: ErrorCode, status?: number): [number, string] => {
  const answer = errorAnswer(new ServeError(code, 'text', { status }))
  return [answer.status, answer.type]
}

test('every code has an error status and a type', () => {
  for (const code of ERROR_CODES) {
    const [status, type] = answerTo(code)
    expect(status).toBeGreaterThanOrEqual(400)
    expect(type).not.toBe('')
  }
})

test.each<[ErrorCode, number, string]>([
  ['UNAUTHORIZED', 400, 'InvalidKeyException'],
  ['INVALID_API_KEY', 400, 'InvalidKeyException'],
  ['CONFLICT', 409, 'ConflictStatusException'],
  ['DEFAULT_VERSION', 403, 'InvalidModelVersionException'],
  ['DOWNLOAD_FAILED', 400, 'DownloadArchiveException'],
  ['DEPENDENCIES_FAILED', 400, 'ModelException'],
  ['CLIENT_STALLED', 408, 'RequestTimeoutException'],
  ['CLEANUP_TIMEOUT', 408, 'RequestTimeoutException'],
  ['HANDLER_FAILED', 503, 'InternalServerException'],
  ['WORKER_LOST', 500, 'InternalServerException'],
  ['RESPONSE_TIMEOUT', 500, 'InternalServerException'],
  ['OUT_OF_MEMORY', 507, 'InternalServerException'],
  ['WORKER_KILLED', 507, 'InternalServerException'],
  ['QUEUE_FULL', 503, 'ServiceUnavailableException'],
  ['NO_DEVICE', 500, 'WorkerInitializationException'],
  ['NO_WORKER', 503, 'ServiceUnavailableException'],
  ['FOREIGN_PAGE', 403, 'ForbiddenException'],
  ['API_DISABLED', 405, 'MethodNotAllowedException'],
])('%s is %i %s', (code, status, type) => {
  expect(answerTo(code)).toEqual([status, type])
})

test.each([
  [418, 418],
  [413, 507],
  [undefined, 500],
  [99, 500],
  [101, 500],
  [1000, 500],
  [NaN, 500],
])('a handler that rejects with %p is answered %i', (chosen, status) => {
  expect(answerTo('HANDLER_REJECTED', chosen)).toEqual([status, 'InternalServerException'])
})
