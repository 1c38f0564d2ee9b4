import { afterAll, expect, jest, test } from '@jest/globals'
import { CORPUS, inputsOf } from './places.ts'
import { TARGETS } from './targets/index.ts'
import { tryInput } from './target.ts'

/** A warning of Node is lines in the server's log with text that a stranger wrote. */
const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
afterAll(() => warned.mockRestore())

/** Seconds of CPU that no input may take. */
const LIMIT_S = 1

test.each(TARGETS.map((target) => [target.name, target] as const))(
  '%s takes or refuses its seeds and every input that once reached new code or was a finding',
  async (name, target) => {
    const seeds = (await target.seeds()).map((seed) => Buffer.from(seed))
    const inputs = [...seeds, ...inputsOf(CORPUS, name)]
    expect(seeds.length).toBeGreaterThan(0)
    const cost = async (input: Buffer): Promise<number> => {
      const began = process.cpuUsage()
      await tryInput(target, input)
      expect(warned.mock.calls).toEqual([])
      return process.cpuUsage(began).user / 1e6
    }
    for (const input of inputs) {
      const seconds = await cost(input)
      // A collection of garbage of the tests before may fall into one of the two, and not into both.
      expect(seconds < LIMIT_S ? seconds : await cost(input)).toBeLessThan(LIMIT_S)
    }
  },
)
