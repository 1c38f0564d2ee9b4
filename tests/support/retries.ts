import { appendFileSync, readFileSync } from 'node:fs'
import { expect } from '@jest/globals'

/** For each test. */
const TRIES = 3
/** Of all tests of a run together. */
const RETRIES_PER_RUN = 10

/**
 * The only way to retry: for what a busy machine can keep a test from observing, such as a stream that ends
 * before the test has seen it run. What the product promises is never retried. Each retry is printed, and
 * their number per run is limited.
 * @param attempt returns what it could not observe, or undefined when done; throws what no busy machine
 * explains
 */
export async function retried(attempt: () => Promise<unknown>): Promise<void> {
  for (let k = 1; ; k += 1) {
    const missed = await attempt()
    if (missed === undefined) return
    const why = `${expect.getState().currentTestName}: ${JSON.stringify(missed)}`
    const file = process.env['TEST_RETRIES_FILE']!
    appendFileSync(file, `${why}\n`)
    const retries = readFileSync(file, 'utf8').split('\n').length - 1
    if (k === TRIES || retries > RETRIES_PER_RUN)
      throw new Error(`Not seen in ${k} tries; ${retries} retries in this run. ${why}`)
  }
}
