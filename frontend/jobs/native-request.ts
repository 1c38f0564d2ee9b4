import { type Operation, OPERATIONS } from '../../common/openai/operations.ts'
import type { JobRequest } from './job.ts'

/** The neutral request for a handler's native method; `body` is the request as JSON. */
export function nativeRequest(
  operation: Operation,
  body: Buffer,
  facts: Omit<JobRequest, 'parts' | 'method'>,
): JobRequest {
  return {
    ...facts,
    method: OPERATIONS[operation].method,
    parts: [{ name: 'body', contentType: 'application/json', data: body }],
  }
}
