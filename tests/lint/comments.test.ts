import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { Linter, type Rule } from 'eslint'
import { REPOSITORY } from '../support/server.ts'

const rules = (await import(join(REPOSITORY, 'tools', 'lint', 'comments.mjs'))) as {
  commentLength: Rule.RuleModule
  noSectionCitations: Rule.RuleModule
}

/** `line rule` of everything that the two rules report. */
function reported(code: string): string[] {
  const house = { rules: { length: rules.commentLength, citations: rules.noSectionCitations } }
  const config = {
    plugins: { house },
    rules: { 'house/length': 'error', 'house/citations': 'error' },
  } as const
  const messages = new Linter({ configType: 'flat' }).verify(code, [config])
  return messages.map(({ line, ruleId }) => `${line} ${ruleId}`)
}

test('a comment line longer than 110 columns is refused, a long line of code is not', () => {
  const code = [
    `// ${'x'.repeat(107)}`,
    `// ${'x'.repeat(108)}`,
    `const text = '${'x'.repeat(110)}'`,
    `call(text) // ${'x'.repeat(100)}`,
    '/**',
    ` * ${'x'.repeat(108)}`,
    ' */',
  ]
  expect(reported(code.join('\n'))).toEqual(['2 house/length', '4 house/length', '6 house/length'])
})

test('a section number of a document that readers cannot open is refused in comments only', () => {
  const code = [
    '/** Shapes of answers (spec 1.2). */',
    '// Torch: spec 9, row 13',
    'const a = "(spec 1.2)"',
    '// the specification, RFC 9113, 6.5.2',
  ]
  expect(reported(code.join('\n'))).toEqual(['1 house/citations', '2 house/citations'])
})
