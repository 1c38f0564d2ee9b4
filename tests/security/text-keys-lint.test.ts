import { execFileSync } from '../support/tools.ts'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { tempDir } from '../support/temp.ts'
import { REPOSITORY } from '../support/server.ts'

/** Number of the lines that the rule refuses, by ESLint in a process of its own. */
function refused(code: string): number[] {
  const folder = tempDir()
  writeFileSync(join(folder, 'code.ts'), code)
  writeFileSync(join(folder, 'tsconfig.json'), '{"compilerOptions":{"strict":true},"files":["code.ts"]}')
  const config = `
    import parser from '${join(REPOSITORY, 'node_modules/@typescript-eslint/parser/dist/index.js')}'
    import { noTextKeys } from '${join(REPOSITORY, 'tools/lint/no-text-keys.mjs')}'
    export default [{ files: ['**/*.ts'], plugins: { house: { rules: { keys: noTextKeys } } }, rules: { 'house/keys': 'error' },
      languageOptions: { parser, parserOptions: { project: '${join(folder, 'tsconfig.json')}', tsconfigRootDir: '${folder}' } } }]`
  writeFileSync(join(folder, 'eslint.config.mjs'), config)
  const script = `
    import { ESLint } from '${join(REPOSITORY, 'node_modules/eslint/lib/api.js')}'
    const [result] = await new (ESLint.ESLint ?? ESLint)({ cwd: '${folder}' }).lintFiles(['code.ts'])
    process.stdout.write(JSON.stringify(result.messages.map((each) => each.line)))`
  writeFileSync(join(folder, 'run.mjs'), script)
  return JSON.parse(
    execFileSync(process.execPath, [join(folder, 'run.mjs')], { encoding: 'utf8' }),
  ) as number[]
}

test('a key that is any text is refused, one of a closed set is not', () => {
  const code = [
    'declare const table: Record<string, number>, name: string, kind: "a" | "b", list: number[], at: number, any: any',
    'export const lookup = table[name]',
    'table[name] = 1',
    'export const inside = name in table',
    'export const { [name]: taken } = table',
    'export const whatever = table[any]',
    'Object.assign(table, {})',
    'export const templated = table[`x${name}` as `x${string}`]',
    'export const fine = [table[kind], list[at], table.size, new Map([["a", 1]]).get(name)]',
  ]
  expect(refused(code.join('\n'))).toEqual([2, 3, 4, 5, 6, 7, 8])
})
