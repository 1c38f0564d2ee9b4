import { randomBytes } from 'node:crypto'
import { type Command, InvalidArgumentError } from 'commander'
import { ServeError } from '../../common/errors.ts'
import type { ApiKeyEntry } from '../auth/api-keys-file.ts'
import { digestOf } from '../auth/authorizer.ts'
import { SCOPES, type Scope } from '../auth/principal.ts'
import { loadSettings } from '../config/load-settings.ts'
import { KeysFile } from './keys-file.ts'
import type { Output } from './output.ts'
import { newCommand, runCommand } from './subcommand.ts'

/** 256 bits, and a mark by which scanners of source code recognize a leaked key. */
const KEY_BYTES = 32
const KEY_MARK = 'tsk_'

const EXAMPLES = `
Examples:
  A key for the models that begin with llama, for 90 days:
    $ torchserve-ts keys add mobile-app --scope inference --models 'llama*' --expires 90d --file keys.json
  A new key for the same caller; the old one works for another day:
    $ torchserve-ts keys rotate mobile-app --keep 1d --file keys.json
  No key of this caller works any more:
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
 * The command `torchserve-ts keys`: makes, lists, rotates and revokes API keys in the keys file.
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
  withFile(program.command('rotate <name>'))
    .description('make a new key in the place of an old one, and print it')
    .option(
      '--keep <time>',
      'how long the old one still works, such as 1h or 1d; 0 ends it now',
      durationOf,
      86_400_000,
    )
    .action((name: string, flags: FileFlags & { keep: number }) => rotate(name, flags, output))
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
    throw new ServeError('CONFIG', `There is a key ${name} already; use rotate, or another name`)
  const { key, sha256 } = newKey()
  const limits = limitsOf(flags)
  const entry: ApiKeyEntry = {
    name,
    sha256,
    scopes: flags.scope,
    models: flags.models,
    ...(flags.expires !== undefined && { expires: timeIn(flags.expires) }),
    ...(Object.keys(limits).length > 0 && { limits }),
  }
  file.content.keys.push(entry)
  await file.write(() => show(key, output))
  tell(`Added ${name} to ${file.path}.`, output)
}

async function rotate(name: string, flags: FileFlags & { keep: number }, output: Output): Promise<void> {
  const file = await KeysFile.open(await pathOf(flags))
  const entry = entryOf(file, name)
  const { key, sha256 } = newKey()
  delete entry.previous
  if (flags.keep > 0) entry.previous = { sha256: entry.sha256, expires: timeIn(flags.keep) }
  entry.sha256 = sha256
  await file.write(() => show(key, output))
  const until =
    entry.previous === undefined ? 'does not work any more' : `works until ${entry.previous.expires}`
  tell(`The old key of ${name} ${until}.`, output)
}

async function revoke(name: string, flags: FileFlags, output: Output): Promise<void> {
  const file = await KeysFile.open(await pathOf(flags))
  const entry = entryOf(file, name)
  file.content.keys = file.content.keys.filter((each) => each !== entry)
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
      'The key could not be written to stdout, so it is not valid: the file has not changed',
    )
}

function tell(what: string, output: Output): void {
  output.err(`${what} The key is shown only now; send it as: Authorization: Bearer KEY`)
}

/** @throws ServeError CONFIG when nothing names the file */
async function pathOf({ file, tsConfig }: FileFlags): Promise<string> {
  if (file !== undefined) return file
  const { settings } = await loadSettings({ tsConfig, configSnapshots: false })
  if (settings.apiKeysFile !== undefined) return settings.apiKeysFile
  throw new ServeError('CONFIG', 'The configuration has no api_keys_file; name the file with --file')
}

function entryOf({ content, path }: KeysFile, name: string): ApiKeyEntry {
  const entry = content.keys.find((each) => each.name === name)
  if (entry === undefined) throw new ServeError('CONFIG', `${path} has no key ${name}`)
  return entry
}

function newKey(): { key: string; sha256: string } {
  const key = KEY_MARK + randomBytes(KEY_BYTES).toString('base64url')
  return { key, sha256: digestOf(key) }
}

function limitsOf({
  requestsPerSecond,
  concurrentStreams,
  bytesPerSecond,
}: AddFlags): ApiKeyEntry['limits'] & object {
  return {
    ...(requestsPerSecond !== undefined && { requestsPerSecond }),
    ...(concurrentStreams !== undefined && { concurrentStreams }),
    ...(bytesPerSecond !== undefined && { bytesPerSecond }),
  }
}

function timeIn(ms: number): string {
  return new Date(Date.now() + ms).toISOString()
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
  if (text === '0') return 0
  if (digits === undefined)
    throw new InvalidArgumentError('It must be a number with s, m, h or d, such as 90d.')
  return Number(digits) * UNITS.get(unit!)!
}

function positiveOf(text: string): number {
  const value = /^\d{1,15}(\.\d{1,9})?$/.test(text) ? Number(text) : NaN
  if (!(value > 0)) throw new InvalidArgumentError('It must be a number above 0.')
  return value
}
