import { PredictionException, type HandlerRequest } from 'torchserve-ts'

/** Builds the language model's request from the client's input, the name of a character. */
export function prompt(requests: HandlerRequest[]): string[] {
  const name = String(requests[0]?.['data'] ?? requests[0]?.['body']).trim()
  if (!/^[A-Z][a-z]{1,30}$/.test(name)) throw new PredictionException('Send one name, like Moses', 400)
  return [JSON.stringify({ prompt: `And ${name} went up into the mountain, and`, max_tokens: 60 })]
}
