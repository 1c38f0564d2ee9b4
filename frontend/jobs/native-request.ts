import { DIALECT_HEADER } from '../../common/dialects.ts'
import { headerLine } from '../../common/header-lines.ts'
import { type Operation, OPERATIONS } from '../../common/openai/operations.ts'
import type { InferenceRequest } from './job.ts'

/**
 * The neutral request to a handler that answers an operation of the API itself; `body` is the JSON of the
 * request.
 */
export function nativeRequest(
  operation: Operation,
  body: Buffer,
  { headers, ...facts }: Omit<InferenceRequest, 'parts'>,
): InferenceRequest {
  return {
    ...facts,
    headers: headers + headerLine(DIALECT_HEADER, OPERATIONS[operation].dialect),
    parts: [{ name: 'body', contentType: 'application/json', data: body }],
  }
}
