/** On a machine that others use too, anything may take far too long once. */
const TRIES = 6

/**
 * For what is promised of times: it holds if it does so in one of some tries; what does not keep the promise fails all of them.
 * @param attempt gives what was too late, or undefined when nothing was; it throws what no busy machine explains. Gets the number of the try, from 1
 */
export async function inOneTry(attempt: (k: number) => Promise<unknown>): Promise<void> {
  const late: unknown[] = []
  for (let k = 1; k <= TRIES; k += 1) {
    const seen = await attempt(k)
    if (seen === undefined) return
    late.push(seen)
  }
  throw new Error(`Too late in each of ${TRIES} tries: ${JSON.stringify(late)}`)
}
