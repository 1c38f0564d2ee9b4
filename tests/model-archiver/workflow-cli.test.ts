import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { build, stop } from 'esbuild'
import { execa } from 'execa'
import { tempFolder } from './temp.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** Inside the repository, so that its packages are found. */
const BUILD = join(ROOT, '.build', `workflow-archiver-cli-${process.pid}`)
const CLI = join(BUILD, 'cli.mjs')

beforeAll(async () => {
  const entryPoints = [join(ROOT, 'model-archiver/workflow-cli.ts')]
  const format = { bundle: true, packages: 'external', platform: 'node', format: 'esm' } as const
  await build({ entryPoints, outfile: CLI, ...format })
  await stop()
})

afterAll(() => rmSync(BUILD, { recursive: true, force: true }))

async function archiver(cwd: string, ...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const result = await execa(process.execPath, [CLI, ...args], { cwd, reject: false })
  return { code: result.exitCode ?? -1, out: result.stdout, err: result.stderr }
}

describe('torch-workflow-archiver-ts', () => {
  test('writes an archive and says where', async () => {
    const folder = tempFolder({ 'spec.yaml': 'dag: {a: []}', 'h.ts': 'export const a = (x: unknown) => x\n' })
    const flags = ['--workflow-name', 'w', '--spec-file', 'spec.yaml', '--handler', 'h.ts']
    const wrote = { code: 0, out: `Wrote ${join(folder, 'out/w.war')}`, err: '' }
    expect(await archiver(folder, ...flags, '--export-path', 'out')).toEqual(wrote)
    expect((await archiver(folder, ...flags, '--export-path', 'out')).err).toMatch(/already exists/)
    expect(await archiver(folder, ...flags, '--export-path', 'out', '-f')).toEqual(wrote)
  })

  test('shows every flag of torch-workflow-archiver', async () => {
    const { code, out } = await archiver(tempFolder(), '--help')
    expect(code).toBe(0)
    for (const flag of [
      ...['--workflow-name', '--spec-file', '--handler', '--extra-files', '--export-path', '-f, --force'],
      ...['--external', '-h, --help'],
    ])
      expect(out).toContain(flag)
  })

  test.each([
    ['no flags', [], /required option '--workflow-name/],
    ['an unknown flag', ['--workflow-name', 'w', '--spec-file', 's', '--x'], /unknown option '--x'/],
    ['a missing file', ['--workflow-name', 'w', '--spec-file', 'no.yaml'], /--spec-file: file not found/],
    ['a bad graph', ['--workflow-name', 'w', '--spec-file', 'loop.yaml'], /Self loop exception/],
  ])('answers %s with one line and exit code 1', async (_what, flags, line) => {
    const folder = tempFolder({ 'loop.yaml': 'dag: {a: [a]}' })
    const { code, out, err } = await archiver(folder, ...flags)
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toMatch(/^error: [^\n]+$/)
    expect(err).toMatch(line)
    expect(existsSync(join(folder, 'w.war'))).toBe(false)
  })
})
