import type { HandlerRequest } from 'torchserve-ts'

/** Answers how large the parts of each request are: bytes, characters of texts, elements of lists. */
export function handle(requests: HandlerRequest[]): string[] {
  return requests.map((request) =>
    Object.values(request)
      .map((value) => (value as { length?: number }).length ?? 0)
      .join(),
  )
}
