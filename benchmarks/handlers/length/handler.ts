import type { HandlerRequest } from 'torchserve-ts'

/** Answers with the number of bytes of the body, so that only the way to the handler is measured. */
export function handle(requests: HandlerRequest[]): string[] {
  return requests.map((request) => String((request['body'] as Uint8Array).byteLength))
}
