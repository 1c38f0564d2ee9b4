import { describe } from '@jest/globals'
import { testPython, type TestPython } from './environments.ts'

export type { TestPython }

/** Tests that need the environment: skipped, with the reason in their name, where it cannot be made. */
export async function describePython(name: string, tests: (python: TestPython) => void): Promise<void> {
  const python = await testPython()
  if (python !== undefined) describe(name, () => tests(python))
  else describe.skip(`${name} (skipped: no Python 3 with venv and pip was found)`, () => tests(NONE))
}

const NONE: TestPython = { python: 'python3', bin: '', realTorch: false }
