import type { HandlerRequest } from 'torchserve-ts'

/** Writes each request to its standard output, which the log takes up, and answers it. */
export function handle(requests: HandlerRequest[]): string[] {
  return requests.map(({ body, data }) => {
    const given = body ?? data
    const text = given instanceof Uint8Array ? new TextDecoder().decode(given) : String(given)
    console.log(text)
    return text
  })
}
