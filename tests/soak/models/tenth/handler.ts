let asked = 0

/** Ends its process on every tenth request. */
export function handle(requests: unknown[]): string[] {
  asked += requests.length
  if (asked % 10 === 0) process.abort()
  return requests.map(() => 'answered')
}
