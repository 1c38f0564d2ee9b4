/**
 * `torch-model-archiver` on the PATH of TorchServe's tests: our archiver with the given flags, except that a
 * stand-in replaces a Python handler that has one. Files for the Python handler alone (weights, architecture,
 * labels, requirements) are left out then. The harness bundles this file into .build.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { standInFor } from '../handler-table.ts'

/**
 * Absolute paths that the bundler sets: our archiver's command, the stand-ins, and a folder with answers.json
 * per network.
 */
declare const ARCHIVER: string
declare const MODELS: string
declare const NETWORKS: string

const PYTHONS_OWN = [
  ...['--handler', '--runtime', '--serialized-file', '--model-file'],
  ...['--extra-files', '--requirements-file', '-r'],
]

function translate(args: readonly string[]): readonly string[] {
  const handler = valueOf('--handler', args)
  const standIn = handler === undefined ? undefined : standInFor(handler)
  if (standIn === undefined) return args
  const kept = args.filter((arg, i) => !PYTHONS_OWN.includes(arg) && !PYTHONS_OWN.includes(args[i - 1] ?? ''))
  return [...kept, '--handler', join(MODELS, standIn), '--extra-files', answers(args)]
}

function valueOf(flag: string, args: readonly string[]): string | undefined {
  const index = args.indexOf(flag)
  return index < 0 ? undefined : args[index + 1]
}

/** Which network it is: the weights say so where a test chooses a name of its own for MNIST. */
function answers(args: readonly string[]): string {
  const mnist = valueOf('--serialized-file', args)?.includes('mnist') ?? false
  const name = mnist ? 'mnist' : (valueOf('--model-name', args) ?? '')
  const file = join(NETWORKS, name, 'answers.json')
  return existsSync(file) ? file : join(NETWORKS, 'unknown', 'answers.json')
}

process.argv.splice(2, Infinity, ...translate(process.argv.slice(2)))
await import(pathToFileURL(ARCHIVER).href)
