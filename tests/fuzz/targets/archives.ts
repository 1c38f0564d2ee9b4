import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { readManifest, readModelConfig, storedManifest } from '../../../model-archiver/manifest.ts'
import { unpackInto } from '../../../model-archiver/unpack-into.ts'
import { checkWorkflowManifest } from '../../../model-archiver/workflow-manifest.ts'
import { parseWorkflowSpec } from '../../../model-archiver/workflow-spec.ts'
import { rawTgz, rawZip } from '../../model-archiver/archives-by-hand.ts'
import type { Target } from '../target.ts'

const LIMITS = { maxFiles: 50, maxBytes: 1_000_000, maxRatio: 100, timeout: 10, minFreeBytes: 0 }
const MANIFEST =
  '{"createdOn":"now","runtime":"node","model":{"modelName":"m","modelVersion":"1.0","handler":"handler.js","configFile":"model-config.yaml"},"archiverVersion":"1"}'
const FILES = [
  { name: 'MAR-INF/MANIFEST.json', content: MANIFEST },
  { name: 'handler.js', content: 'export const handle = () => []' },
  { name: 'a/b/c.txt', content: 'c'.repeat(100) },
]
/** The only thing that may be in the folder besides what the archive has. */
const INSIDE = 'inside'

/** Runs something in a folder of its own; nothing may appear beside `inside`. */
async function inFolder(run: (folder: string, inside: string) => Promise<unknown>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'fuzz-'))
  try {
    const inside = join(folder, INSIDE)
    mkdirSync(inside)
    writeFileSync(join(folder, 'input.mar'), '')
    await run(folder, inside)
  } finally {
    const outside = readdirSync(folder).filter((name) => name !== INSIDE && name !== 'input.mar')
    rmSync(folder, { recursive: true, force: true })
    if (outside.length > 0) throw new Error(`written outside: ${outside.join(' ')}`)
  }
}

function unpack(input: Buffer): Promise<void> {
  return inFolder(async (folder, inside) => {
    const archive = join(folder, 'input.mar')
    writeFileSync(archive, input)
    await unpackInto({ archive, folder: inside, limits: LIMITS })
    await readManifest(inside)
  })
}

export const zip: Target = {
  name: 'zip',
  seeds: () => [
    rawZip(FILES),
    rawZip([{ name: '../x', content: 'x' }]),
    rawZip([
      { name: 'a', content: 'x', declaredSize: 5 },
      { name: 'a', content: 'y' },
    ]),
    rawZip([{ name: 'link', content: '/etc', mode: 0o120777 }]),
  ],
  words: ['PK\x03\x04', 'PK\x01\x02', 'PK\x05\x06', 'PK\x06\x06', '../', 'MAR-INF/'],
  run: unpack,
}

export const zipEntry: Target = {
  name: 'zip-entry',
  seeds: () => [rawZip(FILES)],
  words: ['PK\x03\x04', 'PK\x01\x02', 'PK\x05\x06', 'MAR-INF/MANIFEST.json'],
  run: (input) =>
    inFolder((folder) => {
      writeFileSync(join(folder, 'input.mar'), input)
      return storedManifest(join(folder, 'input.mar'), 50).catch(refusedByYauzl)
    }),
}

/** storedManifest passes on the errors of yauzl, which its callers catch. */
function refusedByYauzl(error: unknown): void {
  if (error instanceof TypeError || error instanceof RangeError) throw error
}

/** Mutated below the compression, which would hide most changes. */
export const tar: Target = {
  name: 'tar',
  seeds: () => [
    gunzipSync(rawTgz(FILES.map((file) => ({ ...file, name: `m/${file.name}` })))),
    gunzipSync(rawTgz([{ name: '../x', content: 'x' }])),
    gunzipSync(rawTgz([{ name: 'm/link', type: '2', link: '/etc' }])),
  ],
  words: ['ustar', '\x00\x00', '../', '30 path=../x\n', '18 size=99999999\n'],
  run: (input) => unpack(gzipSync(input, { level: 1 })),
}

export const gzip: Target = {
  name: 'gzip',
  seeds: () => [rawTgz(FILES.map((file) => ({ ...file, name: `m/${file.name}` })))],
  run: unpack,
}

export const manifest: Target = {
  name: 'manifest',
  seeds: () => [
    MANIFEST,
    '{"model":{"modelName":"m","serializedFile":"x.pt","handler":"h:f","requirementsFile":"r.txt","envelope":"body"},"runtime":"python3","extensions":{}}',
  ],
  words: ['"model"', '"handler"', '"runtime"', '"configFile"', '"modelVersion"'],
  run: (input) =>
    inFolder(async (_folder, inside) => {
      mkdirSync(join(inside, 'MAR-INF'))
      writeFileSync(join(inside, 'MAR-INF', 'MANIFEST.json'), input)
      await readManifest(inside)
    }),
}

export const modelConfig: Target = {
  name: 'model-config',
  seeds: () => [
    'minWorkers: 1\nmaxWorkers: 2\nbatchSize: 4\nhandler:\n  a: [1, 2]\n  b: {c: "d"}\n',
    'a: &x [1]\nb: *x\nc:\n  <<: {d: 1}\ntorchrun:\n  nproc-per-node: 4\n',
    '%YAML 1.1\n---\na: !!binary aGk=\nb: |\n  text\n? complex\n: 1\n...\n',
  ],
  words: ['&a', '*a', '<<:', '!!', '---\n', '|\n', '- ', ': ', '? '],
  run: (input) =>
    inFolder(async (_folder, inside) => {
      writeFileSync(join(inside, 'model-config.yaml'), input)
      await readModelConfig(inside)
    }),
}

export const workflow: Target = {
  name: 'workflow-spec',
  seeds: () => [
    'models:\n  min-workers: 1\n  max-workers: 1\n  m1:\n    url: m1.mar\n    batch-size: 2\ndag:\n  pre: [m1]\n  m1: [post]\n',
  ],
  words: ['models:', 'dag:', 'url:', 'retry-attempts', '[', ']', '&a', '*a'],
  run: async (input) => {
    await parseWorkflowSpec(input.toString())
  },
}

export const workflowManifest: Target = {
  name: 'workflow-manifest',
  seeds: () => [
    '{"workflow":{"workflowName":"w","specFile":"s.yaml","handler":"h.py"},"archiverVersion":"1"}',
  ],
  run: (input) => void checkWorkflowManifest(input.toString()),
}
