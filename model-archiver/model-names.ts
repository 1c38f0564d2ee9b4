import { basename, dirname, join, resolve } from 'node:path'
import { symlink, mkdir, readdir, realpath, stat } from 'node:fs/promises'
import { isName } from '../common/names.ts'
import { ServeError } from '../common/errors.ts'

/** Model names that torch-model-archiver accepts. */
export const MODEL_NAME = /^[A-Za-z0-9][A-Za-z0-9_\-.]*$/

/** File name extensions of archives. */
export const ARCHIVE_SUFFIX = /\.(mar|model|tgz|tar\.gz)$/i

/**
 * Name of a model without a manifest: that of its folder or weights, without the ending. For archives, as in
 * TorchServe, and where that is no valid name, `_` takes the place of all but letters, digits and `_`.
 */
export function defaultModelName(location: string): string {
  const file = basename(location)
  const stem = weightsStem(file).replace(ARCHIVE_SUFFIX, '')
  return isName(stem) && !ARCHIVE_SUFFIX.test(file) ? stem : stem.replace(/\W/g, '_')
}

/** The name of a file of weights in the format GGUF. */
export const GGUF = /\.gguf$/i

/** A model in parts, as llama.cpp's gguf-split names them: `name-00001-of-00003.gguf`. */
const PART = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/i

/** Names of all parts of the model that `name` is the first part of; else that name. */
export function partNames(name: string): string[] {
  const [, stem, index, count] = PART.exec(name) ?? []
  if (stem === undefined || index !== '00001') return [name]
  const numbers = Array.from({ length: Number(count) }, (_, at) => String(at + 1).padStart(5, '0'))
  return numbers.map((number) => `${stem}-${number}-of-${count}.gguf`)
}

/** Whether a file is a later part of a model in parts. */
export function isLaterPart(name: string): boolean {
  const index = PART.exec(name)?.[2]
  return index !== undefined && index !== '00001'
}

/** The name without its ending, and without the number of a part. */
export function weightsStem(name: string): string {
  return PART.exec(name)?.[1] ?? name.replace(GGUF, '')
}

/**
 * Makes a model's folder of a file of weights: links to it, and to the other parts of the same model.
 * @throws ServeError INVALID_MODEL when a part is missing
 */
export async function linkWeights(file: string, folder: string): Promise<void> {
  const source = dirname(file)
  await checkWeights(source, basename(file))
  await mkdir(folder)
  const wanted = new Set(partNames(basename(file)))
  const found = (await readdir(source)).filter((name) => wanted.has(name))
  for (const name of found) await symlink(await realpath(join(source, name)), join(folder, name))
}

/**
 * Checks that the weights of a model's folder are there, before a worker looks for them.
 * @param named their file; undefined: the only .gguf file. With several the handler says what is wrong
 * @throws ServeError INVALID_MODEL that names the missing file
 */
export async function checkWeights(folder: string, named: string | undefined): Promise<void> {
  const found = named === undefined ? await readdir(folder) : [named]
  const [file, ...others] = found.filter((name) => GGUF.test(name) && !isLaterPart(name))
  if (file === undefined || others.length > 0) return
  for (const part of partNames(basename(file))) {
    const path = resolve(folder, dirname(file), part)
    if (await stat(path).catch(() => undefined)) continue
    throw new ServeError('INVALID_MODEL', `The model needs the file ${part}, which is not there`)
  }
}
