import { PredictionException, type HandlerRequest } from 'torchserve-ts'

/**
 * The named values of a request: a JSON object as body or as part `data` (bytes, text or decoded), and any
 * other parts (form fields, gRPC inputs) by name. The server adds `parameters` for language models.
 * @throws PredictionException 400
 */
export function readFields(request: HandlerRequest): Record<string, unknown> {
  const { data, body, parameters: _generation, ...parts } = request
  const fields = Object.fromEntries(Object.entries(parts).map(([name, value]) => [name, decoded(value)]))
  return { ...fields, ...parsed(decoded(data ?? body)) }
}

function decoded(value: unknown): unknown {
  return value instanceof Uint8Array ? new TextDecoder().decode(value) : value
}

function parsed(main: unknown): object | undefined {
  if (main === undefined || main === '') return undefined
  const value = typeof main === 'string' ? json(lastSaid(main)) : main
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw new PredictionException('The body must be a JSON object', 400)
}

/** The user's last message, in a chat rendered by the server's default template (docs/openai.md). */
function lastSaid(text: string): string {
  return /(?:^|\n)User: ([^\n]*)\nAssistant:$/.exec(text)?.[1] ?? text
}

function json(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw new PredictionException('The body must be valid JSON', 400)
  }
}
