import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TestPython } from './environments.ts'
import { execa } from '../tools.ts'

export interface PythonArchive {
  readonly name: string
  /** Source of the handler, or the name of one of TorchServe's own. */
  readonly handler: string
  readonly version?: string
  /** Text of model-config.yaml. */
  readonly config?: string
  /** Text of requirements.txt. */
  readonly requirements?: string
  /** Further files by their name. Those named in `flags` are written too. */
  readonly files?: Readonly<Record<string, string>>
  readonly format?: 'default' | 'tgz' | 'no-archive' | 'zip-store'
  /** More flags for the archiver; paths are relative to the folder with the files. */
  readonly flags?: readonly string[]
}

/**
 * Packs a model with TorchServe's own torch-model-archiver.
 * @param store folder that it goes to
 * @returns its absolute path
 */
export async function packPython(python: TestPython, store: string, archive: PythonArchive): Promise<string> {
  const { name, format = 'default' } = archive
  const folder = mkdtempSync(join(tmpdir(), 'tsts-pack-'))
  try {
    await packIn(folder, python, store, archive)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return join(
    store,
    { default: `${name}.mar`, tgz: `${name}.tar.gz`, 'no-archive': name, 'zip-store': `${name}.mar` }[format],
  )
}

async function packIn(
  folder: string,
  python: TestPython,
  store: string,
  archive: PythonArchive,
): Promise<void> {
  const { name, format = 'default', files = {} } = archive
  mkdirSync(store, { recursive: true })
  for (const [file, text] of Object.entries({ ...files, ...namedFiles(archive) })) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), text)
  }
  await execa(
    join(python.bin, 'torch-model-archiver'),
    [
      ...['--model-name', name, '--version', archive.version ?? '1.0', '--export-path', store, '--force'],
      ...['--archive-format', format, '--handler', isSource(archive) ? 'handler.py' : archive.handler],
      ...(archive.config === undefined ? [] : ['--config-file', 'model-config.yaml']),
      ...(archive.requirements === undefined ? [] : ['--requirements-file', 'requirements.txt']),
      ...(Object.keys(files).length === 0 ? [] : ['--extra-files', Object.keys(files).join(',')]),
      ...(archive.flags ?? []),
    ],
    { cwd: folder, stdin: 'ignore' },
  )
}

function namedFiles(archive: PythonArchive): Record<string, string> {
  return {
    ...(isSource(archive) && { 'handler.py': archive.handler }),
    ...(archive.config !== undefined && { 'model-config.yaml': archive.config }),
    ...(archive.requirements !== undefined && { 'requirements.txt': archive.requirements }),
  }
}

function isSource({ handler }: PythonArchive): boolean {
  return handler.includes('\n')
}
