import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Hub } from '../support/hub.ts'
import { rawRequest } from '../support/raw-http.ts'
import { REPOSITORY, startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'

/** A handler as people write it. */
export interface Case {
  /** A file that defines `answer(folder)`. */
  readonly source: string
  readonly answer: unknown
  /** A command: left out where PATH has none. A package: left out by `npm test`, which installs none. */
  readonly needs?: { readonly command?: string; readonly package?: string }
}

/** One ONNX graph of one node, y = x + x for two floats. */
const ONNX = 'CAgSADo1Cg4KAXgKAXgSAXkiA0FkZBIBZ1oPCgF4EgoKCAgBEgQKAggCYg8KAXkSCgoICAESBAoCCAJCBAoAEA0='
const GGUF = join(REPOSITORY, 'model-store', 'tiny-llama', 'model.gguf')
/** PyTorch prints these without a server, too: about a package that it imports, about a missing GPU. */
const OF_PYTORCH = /import pynvml|pynvml package is deprecated|USDT:|gpuGetDeviceCount failed/
/** torch.compile alone takes most of a minute on a busy machine. */
const LIMIT_MS = 300_000

/** Whether `npm run test:python` runs, with packages that are too large for `npm test`. */
export const HAS_PACKAGES = process.env['TEST_PYTHON'] === 'torch'

/** The cases that this machine and this run have what they need for. */
export async function possible(cases: Readonly<Record<string, Case>>): Promise<[string, Case][]> {
  const found: [string, Case][] = []
  for (const [name, each] of Object.entries(cases)) {
    const { command, package: needed } = each.needs ?? {}
    if (needed !== undefined && !HAS_PACKAGES) continue
    if (command !== undefined && (await execa('which', [command], { reject: false })).failed) continue
    found.push([name, each])
  }
  return found
}

/** A store, and the folder of each model in it. */
export function storeOf(
  cases: readonly [string, Case][],
  write: (folder: string, each: Case) => void,
): string {
  const store = tempDir()
  for (const [name, each] of cases) {
    const folder = join(store, name)
    mkdirSync(folder)
    write(folder, each)
    if (each.source.includes('double.onnx'))
      writeFileSync(join(folder, 'double.onnx'), Buffer.from(ONNX, 'base64'))
    if (each.source.includes('model.gguf')) cpSync(GGUF, join(folder, 'model.gguf'))
  }
  return store
}

export interface Seen {
  /** Of each model, or the failure's text. */
  answers: Record<string, unknown>
  /** Warnings and errors of the server's log. */
  warnings: string[]
}

/** Asks every model of a server with default settings, one after the other. @param path goes before PATH */
export async function runCases(cases: readonly [string, Case][], store: string, path: string): Promise<Seen> {
  const hub = await Hub.start()
  hub.add('acme/tiny', { 'words.txt': 'a word' })
  const env = {
    HOME: tempDir(),
    HF_ENDPOINT: hub.endpoint,
    PATH: `${path}:${process.env['PATH']}`,
  }
  const server = await startServer({ modelStore: store, models: ['all'], env })
  const answers: Record<string, unknown> = {}
  for (const [name] of cases) {
    await server.ready(name, LIMIT_MS)
    const { body } = await rawRequest(server.ports.inference, `/predictions/${name}`, { body: 'x' })
    answers[name] = (JSON.parse(body) as { answer?: unknown }).answer ?? body
  }
  await server.stop()
  const warnings = server.output.filter(
    (line) => /\b(WARN|ERROR)\b|Warning/.test(line) && !OF_PYTORCH.test(line),
  )
  return { answers, warnings }
}
