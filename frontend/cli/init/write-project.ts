import { lstatSync, readFileSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { ServeError } from '../../../common/errors.ts'
import { ownValue } from '../../../common/json.ts'
import { makeFolder } from '../../../common/files.ts'
import { defaultModelName } from '../../../model-archiver/model-names.ts'
import { packageRoot } from '../../../model-archiver/package-root.ts'
import { templatesDir, version } from '../../package-info.ts'

/** npm leaves files of these names with a dot out of packages, so the templates have them without it. */
const DOTFILES: ReadonlySet<string> = new Set(['gitignore', 'npmrc'])

/**
 * Writes a project.
 * @param folder absolute; is made if needed
 * @returns the names of its files
 * @throws ServeError CONFLICT when a file of the project exists, CONFIG when the folder cannot be made;
 *   nothing is written then
 */
export async function writeProject(folder: string, { folders }: Template): Promise<string[]> {
  const files = new Map<string, Buffer>()
  for (const name of folders) {
    const template = join(templatesDir, name)
    for (const file of await readdir(template)) {
      const path = DOTFILES.has(file) ? `.${file}` : file
      files.set(path, filled(await readFile(join(template, file)), folder))
    }
  }
  // A link that leads nowhere is something, too.
  const existing = [...files.keys()].filter((file) => isThere(join(folder, file)))
  if (existing.length > 0)
    throw new ServeError(
      'CONFLICT',
      `${folder} must not have ${existing.sort().join(', ')}: name another folder, or move them away`,
    )
  await makeFolder(folder).catch((cause: unknown) => {
    const why = (cause as Error).message
    const message = `${folder} must be a folder that can be made: name another one (${why})`
    throw new ServeError('CONFIG', message, { cause })
  })
  for (const [file, content] of files) await writeFile(join(folder, file), content, { flag: 'wx' })
  return [...files.keys()].sort()
}

function isThere(path: string): boolean {
  try {
    lstatSync(path)
    return true
  } catch {
    return false // making the folder tells what else is wrong
  }
}

/** Puts the project's names in. Bytes without a place for them stay as they are. */
function filled(content: Buffer, folder: string): Buffer {
  const values = new Map([
    ['package', packageName(folder)],
    ['model', defaultModelName(folder)],
    // In JSON: a path may have quotes.
    ['torchserve-ts', JSON.stringify(dependency(folder)).slice(1, -1)],
  ])
  if (!content.includes('{{')) return content
  const text = content.toString().replace(/\{\{([\w-]+)\}\}/g, (all, name: string) => values.get(name) ?? all)
  return Buffer.from(text)
}

/**
 * The package that runs: its version or, from a checkout or a package that `npm pack` made, where that is,
 * since npm may not have it yet.
 */
function dependency(folder: string): string {
  const root = packageRoot()
  const isInstalled = root.split(sep).includes('node_modules')
  const from = isInstalled ? installedFrom(root) : root
  return from === undefined ? `^${version}` : `file:${relative(folder, from).split(sep).join('/')}`
}

/**
 * The file from which npm installed a package, by what it keeps in node_modules; undefined: it came from a
 * registry, or the file is gone.
 */
export function installedFrom(root: string): string | undefined {
  const modules = dirname(root)
  const name = `node_modules/${basename(root)}`
  try {
    const text = readFileSync(join(modules, '.package-lock.json'), 'utf8')
    const { packages } = JSON.parse(text) as { packages: Record<string, { resolved?: string }> }
    const [, file] = /^file:(.+\.t(?:ar\.)?gz)$/.exec(ownValue(packages, name)?.resolved ?? '') ?? []
    const path = file === undefined ? undefined : resolve(dirname(modules), file)
    return path !== undefined && isThere(path) ? path : undefined
  } catch {
    return undefined // another package manager, or a later npm
  }
}

/** A name that npm accepts. */
function packageName(folder: string): string {
  const name = basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[._-]+/, '')
  return name === '' ? 'my-model' : name
}

/** A kind of project. */
export interface Template {
  readonly about: string
  /** Folders below templates/; their files together are the project. */
  readonly folders: readonly string[]
  /** What its handler needs besides `npm install`. */
  readonly needs?: {
    /** A command in the project's folder that installs it. */
    readonly command?: string
    /** What it says of a model that no command can choose. */
    readonly model?: string
  }
}

export const TEMPLATES: ReadonlyMap<string, Template> = new Map([
  [
    'text-stream',
    { about: 'a handler in TypeScript that streams text', folders: ['typescript', 'text-stream'] },
  ],
  ['onnx', { about: 'an ONNX model, with onnxruntime-node', folders: ['typescript', 'onnx'] }],
  [
    'gguf-chat',
    {
      about: 'a chat with a .gguf file, over the OpenAI API, with node-llama-cpp',
      folders: ['typescript', 'gguf-chat'],
      needs: { model: 'It needs a model, model.gguf in its folder: README.md says how to get one' },
    },
  ],
  [
    'python',
    {
      about: "a handler in Python, in TorchServe's worker",
      folders: ['python'],
      needs: { command: 'pip install -r requirements.txt' },
    },
  ],
])

export const TEMPLATE_NAMES = [...TEMPLATES.keys()]
