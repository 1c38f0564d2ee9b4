import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { KEY_TABLES } from './key-tables.ts'

const DOCUMENT = join(import.meta.dirname, '..', '..', 'docs', 'configuration.md')

/** The first table below a heading. */
function tableBelow(document: string, heading: string): RegExpExecArray | null {
  return new RegExp(`(?<=^#+ ${heading}\n(?:[^|#].*\n|\n)*)(?:^\\|.*\n)+`, 'm').exec(document)
}

/** Set UPDATE_DOCS=1 to write the tables anew. */
test.each(Object.entries(KEY_TABLES))('docs/configuration.md documents: %s', (heading, expected) => {
  const document = readFileSync(DOCUMENT, 'utf8')
  const found = tableBelow(document, heading)
  if (process.env['UPDATE_DOCS'] === '1' && found !== null) {
    const { index } = found
    writeFileSync(
      DOCUMENT,
      `${document.slice(0, index)}${expected}\n${document.slice(index + found[0].length)}`,
    )
  } else {
    expect(found?.[0].trimEnd()).toBe(expected)
  }
})
