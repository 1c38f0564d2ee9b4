import { symlink, mkdir, readdir, realpath } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

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
 * @returns the real paths of what the links lead to
 */
export async function linkWeights(file: string, folder: string): Promise<string[]> {
  await mkdir(folder)
  const source = dirname(file)
  const wanted = new Set(partNames(basename(file)))
  const found = (await readdir(source)).filter((name) => wanted.has(name))
  const real: string[] = []
  for (const name of found) {
    const target = await realpath(join(source, name))
    await symlink(target, join(folder, name))
    real.push(target)
  }
  return real
}
