import { resolve } from 'node:path'
import { parseJson } from '../../common/json.ts'
import type { ValueType } from './value-types.ts'

/** What `{name}` in a word of a wrapper stands for (docs/worker-wrapper.md). */
const PLACEHOLDERS = ['model_dir', 'work_dir', 'worker_dir', 'server_dir'] as const
export type Placeholder = (typeof PLACEHOLDERS)[number]

const PLACEHOLDER = /\{(\w+)\}/g
const FORM = 'a command: a JSON list of words, or words divided by blanks'
const MALFORMED = `must be ${FORM}`

/** The command that is put before a worker's own, in words; empty: no command. */
export const WORKER_WRAPPER: ValueType<readonly string[]> = {
  label: 'command',
  expected: FORM,
  parse: (text, explain) => {
    const value: unknown = text.trimStart().startsWith('[') ? parseJson(text) : text
    const words = wrapperWords(value)
    if (typeof words !== 'string') return words
    if (words !== MALFORMED) explain(words)
    return undefined
  },
}

/**
 * The words of a wrapper. A program with a slash in its path is resolved against the working directory.
 * @param value a list of words, or a text with blanks between them
 * @returns why it is none, as a text
 */
export function wrapperWords(value: unknown): readonly string[] | string {
  const words: unknown = typeof value === 'string' ? value.split(/\s+/).filter((word) => word !== '') : value
  if (!Array.isArray(words) || !words.every((word) => typeof word === 'string' && !word.includes('\0')))
    return MALFORMED
  const [program, ...args] = words as string[]
  if (program === undefined) return []
  if (program === '' || /[{}]/.test(program)) return 'its first word must be a program, without placeholders'
  for (const [whole, name] of args.flatMap((word) => [...word.matchAll(PLACEHOLDER)]))
    if (!PLACEHOLDERS.includes(name as Placeholder))
      return `unknown placeholder ${whole}; known are ${PLACEHOLDERS.map((each) => `{${each}}`).join(', ')}`
  return [program.includes('/') ? resolve(program) : program, ...args]
}

/** The wrapper with its placeholders replaced. */
export function fillWrapper(
  words: readonly string[],
  values: Readonly<Record<Placeholder, string>>,
): string[] {
  return words.map((word) => word.replace(PLACEHOLDER, (_, name) => values[name as Placeholder]))
}
