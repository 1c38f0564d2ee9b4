import { randomBytes } from 'node:crypto'
import { type Command, InvalidArgumentError } from 'commander'
import { ServeError } from '../../common/errors.ts'
import type { ApiKeyEntry } from '../auth/api-keys-file.ts'
import { digestOf } from '../auth/gatekeeper.ts'
import { type Scope, SCOPES } from '../auth/principal.ts'
import { loadSettings } from '../config/load-settings.ts'
import { KeysFile } from './keys-file.ts'
import type { Output } from './output.ts'
import { newCommand, runCommand } from './run-command.ts'

/** 256 bits, and a mark by which scanners of source code recognize a leaked key. */
const KEY_BYTES = 32
const KEY_MARK = 'tsk_'

const EXAMPLES = `
Examples:
  A key for the models that begin with llama, for 90 days:
    $ torchserve-ts keys add mobile-app --scope inference --models 'llama*' --expires 90d --file keys.json
  The key does not work any more:
    $ torchserve-ts keys revoke mobile-app --file keys.json

A running server reads the file again within a second. More: docs/authorization.md`

interface FileFlags {
  file?: string
  tsConfig?: string
}

interface AddFlags extends FileFlags {
  scope: Scope[]
  models: string[]
  /** Milliseconds from now. */
  expires?: number
  requestsPerSecond?: number
  concurrentStreams?: number
  bytesPerSecond?: number
}

/**
 * The command `torchserve-ts keys`: creates, lists and revokes API keys in the keys file.
 * @returns the exit status
 */
export function runKeys(argv: readonly string[], output: Output): Promise<number> {
  return runCommand(definition(output), argv, output)
}

function definition(output: Output): Command {
  const program = newCommand('torchserve-ts keys', output)
  program
    .description('Named API keys (docs/authorization.md)')
    .addHelpText('after', EXAMPLES)
    .action(() => program.outputHelp())
  withFile(program.command('add <name>'))
    .description('make a key and print it; the file keeps only its hash')
    .requiredOption('--scope <scopes...>', `what the key allows: ${SCOPES.join(', ')}`, scopesOf)
    .option('--models <patterns...>', 'models and workflows, * stands for any text', listOf, ['*'])
    .option('--expires <time>', 'how long it is valid, such as 12h or 90d (default: for ever)', durationOf)
    .option('--requests-per-second <number>', 'limit', positiveOf)
    .option('--concurrent-streams <number>', 'limit', positiveOf)
    .option('--bytes-per-second <number>', 'limit, requests and responses together', positiveOf)
    .action((name: string, flags: AddFlags) => add(name, flags, output))
  withFile(program.command('list'))
    .description('list the keys, without anything secret')
    .action((flags: FileFlags) => list(flags, output))
  withFile(program.command('revoke <name>'))
    .description('remove a key')
    .action((name: string, flags: FileFlags) => revoke(name, flags, output))
  return program
}

function withFile(command: Command): Command {
  return command
    .option('--file <file>', 'keys file (default: api_keys_file of the configuration)')
    .option('--ts-config <file>', 'configuration file that names the keys file')
}

async function add(name: string, flags: AddFlags, output: Output): Promise<void> {
  const file = await KeysFile.open(await pathOf(flags), { create: true })
  if (file.content.keys.some((entry) => entry.name === name))
    throw new ServeError('CONFIG', `Key ${name} already exists; use another name`)
  const key = KEY_MARK + randomBytes(KEY_BYTES).toString('base64url')
  const { requestsPerSecond, concurrentStreams, bytesPerSecond } = flags
  const limits = {
    ...(requestsPerSecond !== undefined && { requestsPerSecond }),
    ...(concurrentStreams !== undefined && { concurrentStreams }),
    ...(bytesPerSecond !== undefined && { bytesPerSecond }),
  }
  const entry: ApiKeyEntry = {
    name,
    sha256: digestOf(key),
    scopes: flags.scope,
    models: flags.models,
    ...(flags.expires !== undefined && { expires: new Date(Date.now() + flags.expires).toISOString() }),
    ...(Object.keys(limits).length > 0 && { limits }),
  }
  file.content.keys.push(entry)
  await file.write(() => show(key, output))
  output.err(
    `Added ${name} to ${file.path}. The key is shown only now; send it as: Authorization: Bearer KEY`,
  )
}

async function revoke(name: string, flags: FileFlags, output: Output): Promise<void> {
  const file = await KeysFile.open(await pathOf(flags))
  const kept = file.content.keys.filter((each) => each.name !== name)
  if (kept.length === file.content.keys.length)
    throw new ServeError('CONFIG', `${file.path} has no key ${name}`)
  file.content.keys = kept
  await file.write()
  output.out(`Revoked ${name}.`)
}

async function list(flags: FileFlags, output: Output): Promise<void> {
  const { content, path } = await KeysFile.open(await pathOf(flags))
  if (content.keys.length === 0) output.out(`${path} has no keys.`)
  for (const { name, sha256, scopes, models, expires, limits } of content.keys) {
    const parts = [
      `${name}:`,
      `scopes ${scopes.join(',')}`,
      `models ${models.join(',')}`,
      expires === undefined ? 'for ever' : `until ${expires}`,
      ...Object.entries(limits ?? {}).map(([limit, value]) => `${limit} ${value}`),
      `(sha256 ${sha256.slice(0, 8)}...)`,
    ]
    output.out(parts.join(' '))
  }
}

/** A key that nobody has read must not become valid. */
async function show(key: string, output: Output): Promise<void> {
  output.out(key)
  if ((await output.taken?.()) === false)
    throw new ServeError(
      'CONFIG',
      'The key could not be written to stdout, so it was not saved: the file has not changed',
    )
}

/** @throws ServeError CONFIG when nothing names the file */
async function pathOf({ file, tsConfig }: FileFlags): Promise<string> {
  if (file !== undefined) return file
  const { settings } = await loadSettings({ tsConfig, configSnapshots: false })
  if (settings.apiKeysFile !== undefined) return settings.apiKeysFile
  throw new ServeError('CONFIG', 'The configuration has no api_keys_file; name the file with --file')
}

/** Each value may be a list with commas. Commander calls it for each value. */
function listOf(text: string, before: unknown): string[] {
  const items = text.split(',').filter((item) => item !== '')
  if (items.length === 0) throw new InvalidArgumentError('It must not be empty.')
  return Array.isArray(before) && before.length > 0 && before[0] !== '*'
    ? [...(before as string[]), ...items]
    : items
}

function scopesOf(text: string, before: unknown): string[] {
  const scopes = listOf(text, before)
  const wrong = scopes.find((scope) => !(SCOPES as readonly string[]).includes(scope))
  if (wrong !== undefined) throw new InvalidArgumentError(`It must be one of ${SCOPES.join(', ')}.`)
  return scopes
}

const UNITS: ReadonlyMap<string, number> = new Map([
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
])

function durationOf(text: string): number {
  const [, digits, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  if (digits === undefined)
    throw new InvalidArgumentError('It must be a number with s, m, h or d, such as 90d.')
  return Number(digits) * UNITS.get(unit!)!
}

function positiveOf(text: string): number {
  const value = /^\d{1,15}(\.\d{1,9})?$/.test(text) ? Number(text) : NaN
  if (!(value > 0)) throw new InvalidArgumentError('It must be a number above 0.')
  return value
}
