/** On a machine that others use too, any time may be far too long once. */
const TRIES = 6

/**
 * For what is promised of times: it holds if it does so in one of some tries. What does not keep its promise fails all of them.
 * @param attempt throws when it does not hold; gets the number of the try, from 1
 */
export async function inOneTry(attempt: (k: number) => Promise<void>): Promise<void> {
  for (let k = 1; ; k += 1) {
    try {
      return await attempt(k)
    } catch (error) {
      if (k === TRIES) throw error
    }
  }
}
