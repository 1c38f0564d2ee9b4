import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Mutant } from './mutant.ts'

/**
 * All mutants of the files in `list/`, each of which exports `MUTANTS`. @throws Error when two have the
 * same name
 */
export async function readList(): Promise<Mutant[]> {
  const folder = join(import.meta.dirname, 'list')
  const mutants: Mutant[] = []
  for (const file of (await readdir(folder)).sort()) {
    const { MUTANTS } = (await import(join(folder, file))) as { MUTANTS: readonly Mutant[] }
    mutants.push(...MUTANTS)
  }
  const names = new Set<string>()
  for (const { name } of mutants) {
    if (names.has(name)) throw new Error(`Two mutants have the name "${name}"; names must be unique`)
    names.add(name)
  }
  return mutants
}
