import { type Operation, OPERATIONS } from '../../common/openai/operations.ts'
import type { InferenceRequest } from './job.ts'

/**
 * The neutral request to a handler that answers an operation of the API itself; `body` is the JSON of the
 * request.
 */
export function nativeRequest(
  operation: Operation,
  body: Buffer,
  facts: Omit<InferenceRequest, 'parts' | 'method'>,
): InferenceRequest {
  return {
    ...facts,
    method: OPERATIONS[operation].method,
    parts: [{ name: 'body', contentType: 'application/json', data: body }],
  }
}
