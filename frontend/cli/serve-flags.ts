import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { makeFolder } from '../../common/files.ts'
import { nameProblem } from '../../common/names.ts'
import { SCOPES } from '../auth/principal.ts'
import { parseHost } from '../config/listen-address.ts'
import type { Output } from './output.ts'
import { tempDirOf } from './pid-file.ts'
import { newCommand, portOf } from './run-command.ts'

const EXAMPLES = `
The model is one of:
  a file              model.gguf, or an archive of TorchServe (.mar, .tar.gz)
  a folder            with a handler, a manifest, or a .gguf file
  a URL               of a .gguf file or an archive
  on Hugging Face     org/name, org/name:TAG (such as Q4_K_M), or the address of its page

Examples:
    $ torchserve-ts serve ./model.gguf
    $ torchserve-ts serve ggml-org/gemma-3-270m-it-GGUF --port 9000
    $ torchserve-ts serve bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M --name llama
    $ torchserve-ts serve ./model.gguf --host 0.0.0.0 --api-key KEY -c 8192 -np 8
    $ torchserve-ts serve https://models.example/words.mar --sha256 DIGITS

Without --host it serves to this machine only, without tokens and without a configuration file or snapshot. HF_TOKEN and
HF_ENDPOINT have the meaning that they have for Hugging Face's own client. More: docs/command-line.md`

/** What the command line of `torchserve-ts serve` says. */
export interface ServeFlags {
  readonly name?: string
  readonly host: string
  readonly port: number
  /** Keys, one of which every client must send. */
  readonly apiKey?: readonly string[]
  readonly ctxSize?: number
  readonly parallel?: number
  readonly threads?: number
  readonly gpuLayers?: number | 'all' | 'auto'
  readonly chatTemplate?: string
  /** Seconds; 0: no limit. */
  readonly timeout?: number
  /** Seconds; 0: no limit. */
  readonly queueTimeout?: number
  readonly file?: string
  readonly revision?: string
  readonly sha256?: string
  readonly cache?: string
  readonly verbose?: boolean
}

/** Other names of flags, those of llama-server: commander allows only one letter after one dash. */
const OTHER_NAMES: ReadonlyMap<string, string> = new Map([
  ['-np', '--parallel'],
  ['-ngl', '--gpu-layers'],
  ['--n-gpu-layers', '--gpu-layers'],
  ['-to', '--timeout'],
  ['--alias', '--name'],
  ['--chat-template-file', '--chat-template'],
])

/** The command line with each flag under the name that `serveDefinition` knows. */
export function longFlags(argv: readonly string[]): string[] {
  return argv.map((word) => {
    const [flag, ...value] = word.split('=')
    return [OTHER_NAMES.get(flag!) ?? flag, ...value].join('=')
  })
}

export function serveDefinition(output: Output): Command {
  return newCommand('torchserve-ts serve', output)
    .description('Serve one model in this terminal: a file, a folder, a URL, or a model of Hugging Face')
    .argument('<model>', 'what to serve, see below')
    .option(
      '-a, --name <name>',
      'name of the model in URLs (default: that of the file); also --alias',
      nameOf,
    )
    .option('--host <address>', 'address to listen on', hostOf, '127.0.0.1')
    .option('-p, --port <number>', 'port of the REST APIs; 0: any free one', portOf, 8080)
    .option('--api-key <keys>', 'keys, separated by commas, one of which clients must send', keysOf)
    .option('-c, --ctx-size <tokens>', 'tokens of prompt and answer of one request', countOf)
    .option('--parallel <number>', 'requests that are computed together; also -np', countOf)
    .option('-t, --threads <number>', 'threads that compute', countOf)
    .option('--gpu-layers <number>', 'layers on the GPU, or all, or auto; also -ngl', layersOf)
    .option('--chat-template <template>', 'Jinja template for chats, or a file with it', templateOf)
    .option('--timeout <seconds>', 'longest silence of a request, 0: any; also -to (default: 600)', secondsOf)
    .option('--queue-timeout <seconds>', 'longest wait for a free place, 0: any (default: 600)', secondsOf)
    .option('--file <path>', 'which file of a repository of Hugging Face')
    .option('--revision <revision>', 'branch, tag or commit of the repository (default: main)')
    .option('--sha256 <digits>', 'SHA-256 that the file must have', sha256Of)
    .option(
      '--cache <folder>',
      'where downloaded models are kept (default: torchserve-ts in $XDG_CACHE_HOME or ~/.cache)',
    )
    .option('--verbose', 'print the whole log, not only warnings')
    .addHelpText('after', EXAMPLES)
}

/** Keys of model-config.yaml that the flags set, over those of the model. */
export function configOf(flags: ServeFlags): Record<string, unknown> {
  const { ctxSize, parallel, threads, gpuLayers, chatTemplate, timeout, queueTimeout } = flags
  const handler = {
    context_size: ctxSize,
    sequences: parallel,
    threads,
    gpu_layers: gpuLayers,
    chat_template: chatTemplate,
  }
  const silence = timeout === 0 ? undefined : timeout
  const limits = {
    responseTimeout: silence,
    firstResponseTimeout: timeout,
    gapTimeout: timeout,
    queueTimeout,
  }
  return given({ maxConcurrency: parallel, ...limits, handler: given(handler) })
}

function given(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

/** A keys file with the hashes of these keys, which may do everything. Removed when the process ends. */
export async function keysFile(keys: readonly string[]): Promise<string> {
  const temp = tempDirOf(process.env)
  await makeFolder(temp)
  const folder = mkdtempSync(join(temp, 'torchserve-ts-keys-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'keys.json')
  const entries = [...new Set(keys)].map((key, at) => ({
    name: `key-${at + 1}`,
    sha256: createHash('sha256').update(key).digest('hex'),
    scopes: SCOPES,
  }))
  writeFileSync(path, JSON.stringify({ keys: entries }), { mode: 0o600 })
  return path
}

function nameOf(text: string): string {
  const problem = nameProblem('It', text)
  if (problem !== undefined) throw new InvalidArgumentError(problem)
  return text
}

function hostOf(text: string): string {
  const host = parseHost(text)
  if (host === undefined) throw new InvalidArgumentError('It must be a host name or an IP address.')
  return host
}

function keysOf(text: string): string[] {
  const keys = text.split(',')
  if (keys.every((key) => /^[\x21-\x7e]{1,1024}$/.test(key))) return keys
  throw new InvalidArgumentError('A key must have 1 to 1024 ASCII characters without blanks.')
}

function countOf(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a whole number above 0.')
}

function layersOf(text: string): number | 'all' | 'auto' {
  if (text === 'all' || text === 'auto') return text
  if (/^\d{1,6}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a whole number, all or auto.')
}

function secondsOf(text: string): number {
  const seconds = text.trim() === '' ? NaN : Number(text)
  if (seconds >= 0 && seconds <= 2_147_483) return seconds
  throw new InvalidArgumentError('It must be a number of seconds from 0 to 2147483.')
}

function templateOf(text: string): string {
  if (text.includes('{{') || text.includes('{%')) return text
  if (existsSync(text) && statSync(text).isFile()) return readFileSync(text, 'utf8')
  throw new InvalidArgumentError('It must be a Jinja template or a file with one.')
}

function sha256Of(text: string): string {
  const digits = text.toLowerCase().replace(/^sha256:/, '')
  if (!/^[0-9a-f]{64}$/.test(digits)) throw new InvalidArgumentError('It must be 64 hexadecimal digits.')
  return digits
}
