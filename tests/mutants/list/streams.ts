import type { Mutant } from '../mutant.ts'

/** Items, windows and what waits for a slow client. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'a window of 16 times its size',
    file: 'backend-worker/response-stream.ts',
    find: 'this.#window = request.window\n',
    replace: 'this.#window = request.window * 16\n',
    tests: ['tests/e2e/backpressure.test.ts'],
  },
]
