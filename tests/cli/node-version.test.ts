import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { OLDEST_NODE } from '../../common/node-version.ts'
import { REPOSITORY } from '../support/server.ts'
import { execa } from '../support/tools.ts'

const { bin, engines } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as {
  bin: Record<string, string>
  engines: { node: string }
}

/** Runs a command in a Node.js that has another version number. */
async function runOn(version: string, command: string): Promise<unknown> {
  const code = `Object.defineProperty(process.versions, 'node', { value: '${version}' })`
  const flags = ['--import', `data:text/javascript,${encodeURIComponent(code)}`]
  const script = join(REPOSITORY, bin[command]!)
  const options = { reject: false, env: { ...process.env, NODE_OPTIONS: '' } }
  const { exitCode, stdout, stderr } = await execa(process.execPath, [...flags, script, '--version'], options)
  return [exitCode, stdout, stderr]
}

test.each(Object.keys(bin))('%s ends with one line on a Node.js that is too old', async (command) => {
  for (const version of ['18.20.8', '20.10.0'])
    expect(await runOn(version, command)).toEqual([
      1,
      '',
      `torchserve-ts needs Node 20.11 or newer, this is ${version}`,
    ])
  for (const version of ['20.11.0', '22.0.0'])
    expect(await runOn(version, command)).toEqual([0, expect.stringMatching(/\d+\.\d+\.\d+$/), ''])
})

test('the oldest Node.js is the one that package.json names', () => {
  expect(engines.node).toBe(`>=${OLDEST_NODE.join('.')}`)
})
