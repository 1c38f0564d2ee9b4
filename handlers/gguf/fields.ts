import { PredictionException, type HandlerRequest } from 'torchserve-ts'

/**
 * The named values of a request: a JSON object or plain text (the prompt) as body or as part `data`, and all
 * other parts by name.
 * @throws PredictionException 400
 */
export function readFields(request: HandlerRequest): Record<string, unknown> {
  const { data, body, ...parts } = request
  const fields = Object.fromEntries(Object.entries(parts).map(([name, value]) => [name, decoded(value)]))
  const main = decoded(data ?? body)
  if (main === undefined || main === '') return fields
  if (typeof main === 'string') return { ...fields, ...fromText(main) }
  if (typeof main === 'object' && main !== null && !Array.isArray(main)) return { ...fields, ...main }
  throw new PredictionException('The body must be a JSON object or a string', 400)
}

/** The same with the nearest numbers in place of bigints: templates and grammars take no others. */
export function withNumbers<T>(request: T): T {
  const json = JSON.stringify(request, (_key, each: unknown) =>
    typeof each === 'bigint' ? Number(each) : each,
  )
  return JSON.parse(json) as T
}

function decoded(value: unknown): unknown {
  if (!(value instanceof Uint8Array)) return value
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(value)
  } catch {
    throw new PredictionException('The request must be UTF-8 text', 400)
  }
}

function fromText(text: string): Record<string, unknown> {
  if (!text.trimStart().startsWith('{')) return { prompt: text }
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    const hint = 'for a prompt that begins with { send {"prompt": "..."}'
    throw new PredictionException(`A body that begins with { must be valid JSON; ${hint}`, 400)
  }
}
