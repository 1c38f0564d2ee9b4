import type { Context, HandlerRequest, HandlerResponse } from 'torchserve-ts'

/**
 * Returns its input: the part `data`, else `body`, else the first part. Bytes stay bytes; text and JSON keep
 * their content type.
 */
export function handle(requests: HandlerRequest[], context: Context): HandlerResponse[] {
  return requests.map((request, index) => answer(input(request), index, context))
}

function input(request: HandlerRequest): unknown {
  if ('data' in request) return request['data']
  if ('body' in request) return request['body']
  return Object.values(request)[0] ?? ''
}

function answer(value: unknown, index: number, context: Context): HandlerResponse {
  if (value instanceof Uint8Array) return value
  const asked = context.requestHeader(index, 'content-type') ?? ''
  const isText = typeof value === 'string'
  if (isText && !asked.startsWith('application/json')) {
    if (asked.startsWith('text/')) context.setResponseContentType(index, asked)
    return value
  }
  context.setResponseContentType(index, 'application/json')
  // A string would go out without its quotes.
  return isText ? JSON.stringify(value) : value
}
