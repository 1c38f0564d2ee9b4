import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { REPOSITORY } from '../support/server.ts'

/** A code block of a page. */
export interface Block {
  /** Relative to the repository. */
  readonly page: string
  /** Of its first line of code, from 1. */
  readonly line: number
  readonly language: string
  /** The name in brackets behind the language, as in ```ts [handler.ts]. */
  readonly file: string | undefined
  readonly code: string
}

/** README, the pages of docs, and the other pages for users of the repository. */
export const PAGES: readonly string[] = [
  ...readdirSync(REPOSITORY).filter((name) => name.endsWith('.md')),
  ...['docs', 'model-store', 'workshop'].flatMap((folder) =>
    readdirSync(join(REPOSITORY, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md'))
      .map((name) => join(folder, name)),
  ),
]

export function blocksOf(page: string): Block[] {
  const text = readFileSync(join(REPOSITORY, page), 'utf8')
  return [...text.matchAll(/^```(\w*)(?: \[([^\]\n]+)\])?\n(.*?)^```$/gms)].map((match) => ({
    page,
    line: text.slice(0, match.index).split('\n').length + 1,
    language: match[1]!,
    file: match[2],
    code: match[3]!,
  }))
}

export const BLOCKS: readonly Block[] = PAGES.flatMap(blocksOf)
